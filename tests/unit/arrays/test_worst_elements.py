"""Element by element: against numpy, and against faults planted by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from msprobe_ms.arrays.worst_elements import EQUAL, NON_FINITE, rearranged, study
from msprobe_ms.comparison.node.words import element_lines

FLOATS = st.floats(width=32, allow_nan=True, allow_infinity=True)


@given(st.data())
def test_every_element_is_counted_once_and_the_worst_is_the_worst(data: st.DataObject) -> None:
    shape = data.draw(arrays.array_shapes(max_dims=3, max_side=6))
    target = data.draw(arrays.arrays(np.float32, shape, elements=FLOATS))
    golden = data.draw(arrays.arrays(np.float32, shape, elements=FLOATS))
    found = study(target, golden)
    assert sum(found.absolute.values()) == sum(found.relative.values()) == golden.size
    same = (target == golden) | (np.isnan(target) & np.isnan(golden))
    assert found.absolute[EQUAL] == found.relative[EQUAL] == same.sum()
    assert found.differing == golden.size - same.sum()
    odd = ~same & ~(np.isfinite(target) & np.isfinite(golden))
    assert found.absolute[NON_FINITE] == odd.sum()
    with np.errstate(all="ignore"):
        error = np.where(same, 0, np.where(odd, np.inf, np.abs(target.astype(float) - golden)))
    assert [each.absolute for each in found.largest] == sorted(error[error > 0], reverse=True)[:8]
    for each in found.largest:
        assert each.absolute == error[each.index]
        assert str(each.target) == str(float(target[each.index])) and str(each.golden) == str(float(golden[each.index]))


def test_blocks_give_what_one_piece_would() -> None:
    """More elements than a block, with one error in a place of its own in each of three blocks."""
    golden = np.random.default_rng(1).normal(size=(50, 4000)).astype(np.float32)
    target = golden.copy()
    for place, size in (((0, 7), 3.0), ((20, 7), 1.0), ((49, 7), 2.0)):
        target[place] += size
    found = study(target, golden)
    assert [each.index for each in found.largest] == [(0, 7), (49, 7), (20, 7)]
    assert found.differing == 3 and found.absolute[0] == 3 - (found.absolute[-1])
    rows, columns = found.axes
    assert (rows.size, rows.place, rows.holding) == (50, 0, 2) and rows.share == pytest.approx(9 / 14, rel=1e-5)
    assert (columns.size, columns.place, columns.holding) == (4000, 7, 1) and columns.share == pytest.approx(1)
    text = "\n".join(element_lines(found))
    assert "elements: 3 of 200000 differ" in text
    assert "axis 1 of size 4000: index 7 holds 100.0%, 1 of 4000 hold 90 %  <-- concentrated" in text


def test_without_causes_it_says_where_the_tensors_differ() -> None:
    golden = np.random.default_rng(0).standard_normal((40, 30))
    target = golden * np.where(np.arange(30) == 3, 0.5, 1.0)
    whole, found = study(target, golden), study(target, golden, causes=False)
    assert (found.absolute, found.largest, found.axes) == (whole.absolute, whole.largest, whole.axes)
    assert (found.relative.total(), found.largest_relative, found.likeness) == (0, [], "")


def test_decades_of_the_errors() -> None:
    golden = np.array([1.0, 2.0, 4.0, 0.0, 8.0])
    target = golden + np.array([0.0, 0.5, 0.05, 3.0, 0.0])
    found = study(target, golden)
    assert dict(found.absolute) == {EQUAL: 2, -1: 1, -2: 1, 0: 1, NON_FINITE: 0}
    assert dict(found.relative) == {EQUAL: 2, -1: 1, -2: 1, NON_FINITE: 1}
    assert found.largest_relative[0].index == (3,) and found.largest_relative[0].relative == math.inf
    text = "\n".join(element_lines(found))
    assert "1e+00 to 1e+01" in text and "20.00%" in text and "equal" in text


def test_one_sided_nan_comes_first_and_decides_where_error_sits() -> None:
    golden = np.ones((3, 100))
    target = golden.copy()
    target[2, 5] = np.nan
    target[0] += 1e6
    golden[1, 1] = target[1, 1] = np.inf
    found = study(target, golden)
    assert found.largest[0].index == (2, 5) and found.largest[0].absolute == math.inf
    assert found.axes[0].place == 2 and found.axes[1].place == 5
    assert "1 are NaN or infinite on one side alone" in next(element_lines(found))


def test_equal_tensors_say_so_in_one_line() -> None:
    assert list(element_lines(study(np.ones(3), np.ones(3)))) == ["elements: all 3 equal"]
    assert list(element_lines(study(np.ones(0), np.ones(0)))) == ["elements: all 0 equal"]


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda golden: golden * np.float32(0.125), "the target is 0.125 × the golden"),
        (lambda golden: golden * np.float32(-1), "the target is -1 × the golden"),
        (lambda golden: golden + np.float32(0.5), "the target is the golden + 0.5 everywhere"),
        (lambda golden: golden - np.float32(0.5), "the target is the golden − 0.5 everywhere"),
        (lambda golden: np.zeros_like(golden), "the target is all zeros"),
        (lambda golden: golden.T, "equal when transposed"),
        (lambda golden: golden[::-1], ""),
        (lambda golden: golden * np.float32(1 + 1e-7), ""),
    ],
)
def test_the_one_simple_cause_is_named(change: object, cause: str) -> None:
    golden = np.random.default_rng(2).normal(size=(64, 64)).astype(np.float32)
    target = change(golden)  # type: ignore[operator]
    assert study(target, golden).likeness == cause
    lines = list(element_lines(study(target, golden)))
    assert (cause in "".join(lines[1])) if cause else lines[1] == "largest errors:"


def test_rearranged_elements_are_told_from_other_ones() -> None:
    golden = np.arange(24.0).reshape(2, 3, 4)
    assert rearranged(golden.swapaxes(0, 2), golden) == "equal when axes 0 and 2 are swapped"
    assert rearranged(golden.reshape(6, 4), golden) == "equal but for the shape"
    assert rearranged(golden.reshape(6, 4).T, golden.reshape(6, 4)) == "equal when transposed"
    assert rearranged(golden.reshape(4, 6), golden.reshape(6, 4).T) == ""
    assert rearranged(golden[0], golden) == ""


def test_whole_numbers_bools_and_complex_numbers() -> None:
    assert study(np.array([1, 2**62]), np.array([1, 2**62 + 2**20])).differing == 1
    assert study(np.array([True, False]), np.array([True, True])).largest[0].index == (1,)
    (worst,) = study(np.array([1 + 1j, 2]), np.array([1 + 1j, 2 + 3j])).largest
    assert (worst.target, worst.golden, worst.absolute) == (2, 2 + 3j, 3.0)
    scalar = study(np.float32(1.5), np.float32(1.0))  # 0-d
    assert scalar.largest[0].index == () and scalar.axes == []
    assert "[]" in "\n".join(element_lines(scalar))
