"""The distance of neighbouring numbers, against numpy's and against counting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.accuracy.judging.ulp import float_format, spacing
from msprobe_ms.arrays.dtypes import float8_values
from msprobe_ms.arrays.typed import rounded


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@given(data=st.data())
def test_spacing_is_that_of_numpy(dtype: str, data: st.DataObject) -> None:
    width = int(dtype[5:])
    largest = float(np.finfo(dtype).max) / 2
    value = data.draw(st.floats(-largest, largest, width=width))  # type: ignore[arg-type]
    found, expected = float_format(dtype), np.spacing(np.abs(np.array(value, dtype)))
    assert found is not None
    assert float(spacing(np.array(value), found)) == float(expected)


@given(value=st.floats(2.0**-120, 2.0**120))
def test_the_next_bfloat16_is_one_spacing_away(value: float) -> None:
    of = float_format("bfloat16")
    assert of is not None
    near = float(rounded(np.array(value), "bfloat16").values)
    step = float(spacing(np.array(near), of))
    assert float(rounded(np.array(near + step), "bfloat16").values) == near + step
    assert float(rounded(np.array(near + 0.4 * step), "bfloat16").values) == near


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_the_formats_of_float8_are_those_of_their_numbers(dtype: str) -> None:
    of = float_format(dtype)
    assert of is not None
    numbers = np.unique(np.abs(float8_values(dtype)[np.isfinite(float8_values(dtype))])).astype(np.float64)
    assert numbers.max() == of.largest
    assert (spacing(numbers[:-1], of) == np.diff(numbers)).all()


def test_complex_numbers_have_the_format_of_their_parts_and_integers_none() -> None:
    assert float_format("complex64") == float_format("torch.float32")
    assert float_format("int32") is None and float_format("Bool") is None
