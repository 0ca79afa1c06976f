"""Operations whose references are formulae run in this process."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from proof_calls import floats, layer_norm

from msprobe_ms.accuracy.proof.operation import CannotRun, Operation, Parameter, Workshop, described
from msprobe_ms.frameworks.api_calls import Arguments


def test_a_formula_runs_in_double_with_the_attributes_of_its_primitive() -> None:
    made = Operation(Workshop(), "mindspore", "Primitive", "GeLU")
    x = floats(5)
    (y,) = made.in_double(Arguments((x,))).outputs
    assert y.dtype == "float64"
    assert np.allclose(y.values, x.values * 0.5 * (1 + np.tanh(0.7978845608 * (x.values + 0.044715 * x.values**3))))
    with pytest.raises(CannotRun, match="signature known"):
        made.in_double(Arguments((x, x, x)))
    assert made.with_attributes({"axis": 1}).attributes == {"axis": 1}


def test_what_it_takes_is_told_by_its_signature() -> None:
    names = [each.name for each in layer_norm().operation.parameters]
    assert names == ["input", "normalized_shape", "weight", "bias", "eps"]
    assert described(inspect.signature(lambda a, *rest, b=2, **more: None)) == (
        Parameter("a", False), Parameter("b", True, 2),
    )  # fmt: skip
