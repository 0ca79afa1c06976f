"""Every figure of msprobe's standards, against numbers computed by hand and against the formula in plain numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from msprobe_ms.accuracy.judging import figures as fig
from msprobe_ms.accuracy.judging.ulp import float_format

BENCH = np.array([1.0, -2.0, 0.5, 1e-7])
DEVICE = np.array([1.1, -2.0, 0.4, 3e-7])
ERRORS = np.abs(DEVICE - BENCH)
ALL = np.ones(4, bool)

FINITE = st.floats(-1e6, 1e6, width=32)
PAIRS = st.integers(1, 30).flatmap(
    lambda count: st.tuples(*(arrays(np.float64, count, elements=FINITE) for _ in range(2)))
)


def test_cosine_by_hand() -> None:
    b, d = np.array([3.0, 4.0]), np.array([4.0, 3.0])
    assert fig.cosine_as_mindspore(b, d) == pytest.approx((1e-8 + 24) / (1e-8 + 25), rel=1e-15)
    assert fig.cosine_as_pytorch(b, d) == pytest.approx(24 / 25, rel=1e-15)
    assert fig.cosine_as_mindspore(np.zeros(3), np.zeros(3)) == 1.0  # the tiny terms decide
    assert fig.cosine_as_mindspore(np.ones(3), np.zeros(3)) == 1.0


@given(pair=PAIRS)
def test_cosine_of_pytorch_knows_no_scale(pair: tuple[np.ndarray, np.ndarray]) -> None:
    b, d = pair
    if np.abs(b).max() > 1e-3 and np.abs(d).max() > 1e-3:
        plain = b @ d / (np.linalg.norm(b) * np.linalg.norm(d))
        assert fig.cosine_as_pytorch(b * 1e150, d * 1e150) == pytest.approx(plain, abs=1e-12)


def test_absolute_and_relative_errors_by_hand() -> None:
    assert fig.max_absolute(ERRORS) == pytest.approx(0.1)
    assert fig.max_absolute(np.zeros(0)) == 0.0
    assert fig.max_relative_as_mindspore(BENCH, ERRORS) == pytest.approx(2.0)
    assert fig.max_relative_as_mindspore(np.array([0.0]), np.array([1e-7])) == pytest.approx(10.0)
    assert fig.relative_errors(BENCH, ERRORS, 0.5) == pytest.approx([0.1 / 1.5, 0.0, 0.1, 2e-7 / 0.5000001])


def test_shares_are_of_the_elements_concerned() -> None:
    assert fig.share(np.array([True, False, True, False])) == 0.5
    assert fig.share(np.array([True, False, True, False]), np.array([True, True, True, False])) == pytest.approx(2 / 3)
    assert fig.share(np.array([True]), np.array([False])) == 0.0
    assert fig.share(np.zeros(0, bool)) == 0.0


def test_the_small_domain() -> None:
    bench = np.array([1e-6, 2e-6, 0.0, np.nan, np.inf])
    small = fig.small_values(bench, np.isfinite(bench), 1e-6)
    assert small.tolist() == [True, False, True, False, False]


def test_root_mean_square_error_by_hand() -> None:
    errors, counted = np.array([3.0, 4.0, 100.0, np.nan]), np.array([True, True, False, False])
    expected = math.sqrt((9 + 16) / 4 * (4 / (4 - 2 + 1e-4) + 1e-4))
    assert fig.root_mean_square_error(errors, counted) == pytest.approx(expected, rel=1e-14)
    assert fig.root_mean_square_error(np.zeros(0), np.zeros(0, bool)) == 0.0


@given(pair=PAIRS)
def test_root_mean_square_error_is_nearly_that_of_what_is_counted(pair: tuple[np.ndarray, np.ndarray]) -> None:
    errors = np.abs(pair[0])
    counted = pair[1] > 0
    plain = math.sqrt(np.mean(np.square(errors[counted]))) if counted.any() else 0.0
    assert fig.root_mean_square_error(errors, counted) == pytest.approx(plain, rel=1e-3)


def test_error_balance_counts_after_rounding_to_the_dtype() -> None:
    assert fig.error_balance(BENCH, DEVICE, "float32") == pytest.approx(1 / 4)  # two above, one below
    third = np.array([1 / 3, 1 / 3])
    assert fig.error_balance(third, third.astype(np.float32).astype(np.float64), "float32") == 0.0
    assert fig.error_balance(third, third.astype(np.float32).astype(np.float64), "float64") == 1.0


def test_non_finite_elements_agree_in_kind_and_up_to_the_largest_number() -> None:
    bench = np.array([np.nan, np.inf, -np.inf, 1.0, np.inf, np.nan, 2.0])
    device = np.array([np.nan, 65504.0, np.inf, np.nan, np.inf, 0.0, 2.0])
    finite = np.isfinite(bench) & np.isfinite(device)
    # Of six that are not finite on one side these disagree: the third, the fourth and the sixth.
    assert fig.non_finite_errors(bench, device, finite, 65504.0, 2.0**-10, 1e-3) == 0.5
    assert fig.non_finite_errors(BENCH, DEVICE, ALL, 65504.0, 2.0**-10, 1e-3) == 0.0


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_ulp_errors_count_neighbours(dtype: str) -> None:
    of = float_format(dtype)
    assert of is not None
    bench = np.array([1.0, 1.5, 3.0, 0.125], dtype)
    device = np.nextafter(np.nextafter(bench, np.array(np.inf, dtype)), np.array(np.inf, dtype))
    assert fig.ulp_errors(bench.astype(np.float64), device.astype(np.float64), of).tolist() == [2.0] * 4


def test_ulp_errors_at_zero_and_below_the_normal_numbers() -> None:
    of = float_format("float16")
    assert of is not None
    bench, device = np.array([0.0, 2.0**-24]), np.array([2.0**-10, 2.0**-23])
    assert fig.ulp_errors(bench, device, of).tolist() == [1.0, 1.0]


def test_ulp_errors_of_float32_are_finer_than_its_numbers() -> None:
    of = float_format("float32")
    assert of is not None
    assert fig.ulp_errors(np.array([1.0 + 2.0**-24]), np.array([1.0]), of).tolist() == [0.5]
