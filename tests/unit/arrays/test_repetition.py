"""Views that show more elements than they hold: which those are, and that their statistics are those of the whole."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from msprobe_ms.arrays.repetition import Distinct, distinct
from msprobe_ms.arrays.statistics import statistics

VALUES = np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4)


def found(array: np.ndarray, least: int = 10) -> Distinct:
    return distinct(array, array.shape, array.strides, least)


@pytest.mark.parametrize(
    ("array", "times"),
    [
        (np.broadcast_to(VALUES, (5, 3, 4)), 5),
        (np.broadcast_to(VALUES[:, None], (3, 7, 4)), 7),
        (np.broadcast_to(VALUES[::-1, :, None], (3, 4, 6)), 6),
        (np.broadcast_to(np.float64(2.5), (4, 5)), 20),
        (np.broadcast_to(VALUES.astype(np.float16)[1:, None, ::2, None], (2, 3, 2, 4)), 12),
        (np.broadcast_to(VALUES > 0, (9, 3, 4)), 9),
        (np.broadcast_to((VALUES * 10).astype(np.int64), (2, 3, 4)), 2),
        (np.broadcast_to(np.array([1.0, math.nan, math.inf]), (7, 3)), 7),
        (VALUES, 1),
        (VALUES.T[::-1], 1),
        (sliding_window_view(VALUES.ravel(), 2), 1),
    ],
)
def test_statistics_are_those_of_the_whole(array: np.ndarray, times: int) -> None:
    known = found(array)
    assert known.times == times and known.elements.size * times == array.size
    if times == 1:
        assert known.elements is array
    ours = known.statistics(statistics(known.elements), array.size)
    for figure, expected in zip(ours, statistics(np.ascontiguousarray(array)), strict=True):
        assert type(figure) is type(expected)
        assert figure == expected or figure == pytest.approx(expected, rel=1e-6, nan_ok=True)


@pytest.mark.parametrize(("dtype", "count"), [(np.float32, 0), (np.float32, 4), (np.int32, 4), (bool, 4)])
def test_zeros_besides(dtype: type, count: int) -> None:
    """As of a sparse tensor."""
    elements = np.array([3, 1, 2, 5][:count], dtype)
    whole = np.concatenate((elements, np.zeros(6, dtype)))
    ours = Distinct(elements, zeros=6).statistics(statistics(elements), whole.size)
    for figure, expected in zip(ours, statistics(whole), strict=True):
        assert type(figure) is type(expected)
        assert figure == expected or figure == pytest.approx(expected, rel=1e-6)


def test_a_small_view_is_taken_as_it_is() -> None:
    array = np.broadcast_to(VALUES, (5, 3, 4))
    assert found(array, least=60).elements is array


def test_what_overlaps_too_much_is_not_read() -> None:
    assert found(sliding_window_view(np.ones(100), 50)).elements is None
    assert found(np.broadcast_to(sliding_window_view(np.ones(100), 50), (3, 51, 50))).elements is None
    assert found(sliding_window_view(np.ones(100), 4)[::2]).elements is not None


def test_empty_and_huge() -> None:
    assert found(np.empty((0, 10**9))).times == 1
    spent = time.process_time()
    huge = as_strided(np.ones(1), (10**6, 10**5), (0, 0))
    known = distinct(huge, huge.shape, huge.strides)
    assert known.times == 10**11 and known.elements.size == 1
    assert known.statistics(statistics(known.elements), 10**11).norm == pytest.approx(math.sqrt(1e11))
    assert time.process_time() - spent < 1
