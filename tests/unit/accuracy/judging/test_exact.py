"""Equality to the bit, where it is asked: integers, NaN, places of infinity."""

from __future__ import annotations

import math

import numpy as np
import pytest

from msprobe_ms.accuracy.judging.exact import explained_errors, judge_exact, misplaced, unequal_elements
from msprobe_ms.accuracy.judging.findings import EXCESS, ULP
from msprobe_ms.accuracy.judging.model import Status
from msprobe_ms.arrays.typed import TypedArray


@pytest.mark.parametrize(
    ("one", "other", "unequal"),
    [
        (np.array([2**63 - 1, -1]), np.array([2**63 - 1, 2**64 - 1], np.uint64), [False, True]),
        (np.array([np.nan, 1.0]), np.array([np.nan, np.nan]), [False, True]),
        (np.array([True, False]), np.array([1, 1]), [False, True]),
        (np.array([0.0]), np.array([-0.0]), [False]),
    ],
)
def test_unequal_elements(one: np.ndarray, other: np.ndarray, unequal: list[bool]) -> None:
    assert unequal_elements(one, other).tolist() == unequal_elements(other, one).tolist() == unequal


def test_what_is_equal_once_rounded_is_exact() -> None:
    bench, device = (TypedArray(dtype, np.array([0.1, math.nan], dtype)) for dtype in ("float64", "float32"))
    found = judge_exact(bench, device, None)
    assert (found.status, found.figures[ULP]) == (Status.PASS, 0.0)


def test_how_far_the_unequal_are_apart_is_told() -> None:
    bench, device = (TypedArray("float32", np.array([1.0, value], np.float32)) for value in (2.0, 2.0 + 2.0**-21))
    found = judge_exact(bench, device, None)
    assert (found.status, found.figures[ULP], found.figures[EXCESS]) == (Status.ERROR, 2.0, math.inf)
    assert found.message == "1 of 2 elements is unequal; first at (1): 2.00000048 instead of 2"


def test_of_integers_no_ulp_is_told() -> None:
    found = judge_exact(TypedArray("int32", np.array([[1]])), TypedArray("int32", np.array([[2]])), None)
    assert (found.figures[ULP], found.message) == (
        None, "1 of 1 element is unequal; first at (0, 0): 2 instead of 1",
    )  # fmt: skip
    one, other = (TypedArray("int32", np.array([[value]])) for value in (1, 2))
    assert judge_exact(one, other, 1.0).status is Status.PASS
    assert judge_exact(one, other, 0.5).status is Status.ERROR


def test_places_of_nan_and_infinity() -> None:
    b, d = np.array([1.0, np.nan, np.inf]), np.array([2.0, np.nan, np.inf])
    assert misplaced(b, d, None, 65504.0) is None
    found = misplaced(b, d[::-1], None, 65504.0)
    assert found is not None and found.status is Status.ERROR
    assert misplaced(b, d[::-1], np.full(3, np.inf), 65504.0) is None


def test_explained_errors_are_sizes_and_nan_explains_nothing() -> None:
    assert explained_errors(np.array([-1.0, np.nan]), (2,)).tolist() == [1.0, 0.0]
    assert explained_errors(2.0, (2,)).tolist() == [2.0, 2.0]
    assert explained_errors(None, (1,)).tolist() == [0.0]
