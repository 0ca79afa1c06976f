"""The precision of references, and arguments moved by what rounding may do."""

from __future__ import annotations

import numpy as np
import pytest

from msprobe_ms.accuracy.precision import Precision, perturbed, raise_leaf, reference_dtype
from msprobe_ms.arrays.typed import TypedArray, rounded
from msprobe_ms.frameworks.api_calls import Arguments, DtypeArgument


def of(*dtypes: str) -> Arguments:
    return Arguments(tuple(rounded(np.ones(3), dtype) for dtype in dtypes))


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [(["float16"], "float32"), (["bfloat16", "bfloat16"], "float32"), (["float32"], "float64"),
     (["float32", "float16"], "float32"), (["float64"], "float64"), (["float32", "int64"], "float64")],
)  # fmt: skip
def test_one_step_above_as_msprobe_has_it(dtypes: list[str], expected: str) -> None:
    assert reference_dtype(of(*dtypes), Precision.PEER) == expected
    assert reference_dtype(of(*dtypes), Precision.DOUBLE) == "float64"
    assert reference_dtype(of(*dtypes), Precision.SAME) is None


def test_floats_and_dtypes_are_raised_and_nothing_else() -> None:
    raised = raise_leaf(rounded(np.array([0.1]), "float16"), "float64")
    assert raised.dtype == "float64" and raised.values[0] == np.float64(np.float16(0.1))
    assert raise_leaf(DtypeArgument("float16"), "float64") == DtypeArgument("float64")
    assert raise_leaf(DtypeArgument("int32"), "float64") == DtypeArgument("int32")
    index = TypedArray("int64", np.arange(3))
    assert raise_leaf(index, "float64") is index
    assert raise_leaf(2, "float64") == 2


def test_moved_arguments_stay_within_half_a_unit_in_the_last_place() -> None:
    exact = rounded(np.linspace(-3, 3, 1001), "bfloat16")
    near = perturbed(Arguments((exact, TypedArray("int64", np.arange(3)))), 1, "Mint.add.0", 0)
    moved, index = near.positional
    assert moved.dtype == "float64" and index.dtype == "int64"
    errors = np.abs(moved.values - exact.values)
    assert (errors <= np.abs(exact.values) * 2.0**-8).all() and errors.max() > 0
    assert moved.values[500] == 0
