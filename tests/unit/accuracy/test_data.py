"""Values that are drawn for a recorded tensor: range, mean, spread, what is not finite; the same for the same place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.accuracy.calls import ApiCall, RecordedTensor
from msprobe_ms.accuracy.data import CannotDraw, drawn
from msprobe_ms.arrays.typed import TypedArray


def draw(tensor: RecordedTensor, *, call: str = "Mint.sub.0", seed: int = 1) -> TypedArray:
    prefix, api, _ = call.split(".")
    return drawn(ApiCall(call, prefix, api), seed)(tensor._replace(place=tensor.place or "forward.input.0"))


def described(values: np.ndarray, dtype: str = "float32") -> RecordedTensor:
    wide = values.astype(np.float64)
    return RecordedTensor(
        dtype, values.shape, float(wide.max()), float(wide.min()), float(wide.mean()), float(np.linalg.norm(wide))
    )


@pytest.mark.parametrize("make", [np.random.Generator.standard_normal, np.random.Generator.random])
def test_drawn_values_fit_the_recorded_statistics(make: Any) -> None:
    original = make(np.random.default_rng(0), 20_000)
    values = draw(described(original)).values
    assert (values.min(), values.max()) == (np.float32(original.min()), np.float32(original.max()))
    assert values.mean() == pytest.approx(original.mean(), abs=0.03)
    assert values.std() == pytest.approx(original.std(), rel=0.03)


@given(
    st.sampled_from(["float32", "float16", "bfloat16", "int64", "int8", "uint8"]),
    st.lists(st.integers(0, 4), max_size=3),
    st.integers(-100, 100), st.integers(0, 100),
)  # fmt: skip
def test_values_stay_in_range_and_both_ends_occur(dtype: str, shape: list[int], low: int, width: int) -> None:
    low = abs(low) if dtype == "uint8" else low
    high = low + width
    values = draw(RecordedTensor(dtype, tuple(shape), high, low, None, None)).values
    assert values.shape == tuple(shape)
    if values.size > 1:
        assert (values.min(), values.max()) == (low, high) or dtype == "int8"
    assert values.size == 0 or (low <= values.min() and values.max() <= high) or dtype == "int8"


def test_two_arguments_of_a_call_differ_and_the_same_one_does_not() -> None:
    tensor = RecordedTensor("float32", (50,), 1.0, -1.0, 0.0, 4.0)
    first = draw(tensor).values
    np.testing.assert_array_equal(first, draw(tensor).values)
    for other in (
        draw(tensor._replace(place="forward.input.1")),
        draw(tensor, call="Mint.sub.1"),
        draw(tensor, seed=2),
    ):
        assert not np.array_equal(first, other.values)


def test_what_is_not_finite_is_where_the_statistics_say() -> None:
    nan, inf = float("nan"), float("inf")
    with_nan = draw(RecordedTensor("float32", (10,), nan, nan, nan, nan, 4.0, 2.0)).values
    assert np.isnan(with_nan).tolist() == [False, True, *[False] * 8]
    assert np.nanmin(with_nan) >= 2.0 and np.nanmax(with_nan) <= 4.0
    with_infinity = draw(RecordedTensor("float32", (10,), inf, -1.0, inf, inf)).values
    assert np.isposinf(with_infinity).tolist() == [*[False] * 9, True]
    assert with_infinity[0] == -1.0


def test_bools_are_as_recorded() -> None:
    assert draw(RecordedTensor("bool", (9,), True, True)).values.all()
    assert not draw(RecordedTensor("bool", (9,), False, False)).values.any()
    assert set(draw(RecordedTensor("bool", (9,), True, False)).values.tolist()) == {True, False}


def test_dtypes_without_values_are_refused() -> None:
    with pytest.raises(CannotDraw, match="quint8"):
        draw(RecordedTensor("quint8", (2,), 1, 0))


@pytest.mark.parametrize(
    "tensor",
    [
        RecordedTensor("float32", (1,) * 70),
        RecordedTensor("float32", (2,), 10**400, 0),
        RecordedTensor("int8", (0, 2**62, 2**62)),
        RecordedTensor("uint4", (2,), 1, 0),
    ],
)  # fmt: skip
def test_what_no_tensor_can_be_is_refused(tensor: RecordedTensor) -> None:
    with pytest.raises(CannotDraw, match="as the dump describes"):
        draw(tensor)


def test_complex_values_have_the_recorded_magnitudes() -> None:
    values = draw(RecordedTensor("complex64", (200,), 3.0, 1.0, 2.0, None)).values
    assert values.dtype == np.complex64
    assert np.abs(values).min() > 0.99 and np.abs(values).max() < 3.01
