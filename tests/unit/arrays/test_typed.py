"""Arrays of dtypes that numpy lacks: rounding, held against ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from msprobe_ms.arrays.typed import rounded

_FLOATS = hnp.arrays(np.float32, st.integers(1, 20), elements=st.floats(width=32))


@given(_FLOATS)
def test_bfloat16_is_rounded_as_ml_dtypes_does(values: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        expected = values.astype(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(rounded(values, "torch.bfloat16").values, expected)


def test_float64_is_rounded_once() -> None:
    # Just above the middle of two bfloat16 numbers, but in the middle when rounded to float32 first.
    assert rounded(np.array(1 + 2.0**-8 + 2.0**-30), "bfloat16").values == 1 + 2.0**-7


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_float8_is_rounded_as_ml_dtypes_does_within_its_range(dtype: str) -> None:
    generator = np.random.default_rng(0)
    values = generator.standard_normal(2000) * 10.0 ** generator.integers(-6, 2, 2000)
    expected = np.clip(values, -440, 440).astype(getattr(ml_dtypes, dtype)).astype(np.float32)
    np.testing.assert_array_equal(rounded(np.clip(values, -440, 440), dtype).values, expected)


def test_other_dtypes_are_numpys() -> None:
    typed = rounded(np.array([1.9, -1.9]), "Int32")
    assert (typed.dtype, typed.values.dtype, typed.values.tolist()) == ("int32", np.int32, [1, -1])
    assert rounded(np.array(1e6), "Float16").values == np.inf
    with pytest.raises(TypeError):
        rounded(np.array(1.0), "quint8")
