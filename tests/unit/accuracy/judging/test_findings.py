"""The words of findings."""

from __future__ import annotations

import numpy as np

from msprobe_ms.accuracy.judging.findings import beside, counted, first, place, place_of


def test_elements_are_counted_in_words() -> None:
    assert [counted(*each) for each in ((1, 1), (1, 5), (5, 5))] == [
        "1 of 1 element is", "1 of 5 elements is", "5 of 5 elements are",
    ]  # fmt: skip


def test_places() -> None:
    mask = np.zeros((2, 3, 4), bool)
    mask[1, 2, 3] = mask[1, 2, 0] = True
    assert first(mask) == (1, 2, 0) and place_of(mask.size - 1, mask.shape) == (1, 2, 3)
    assert place(first(mask)) == "(1, 2, 0)" and place(()) == "()"


def test_values_of_every_kind_are_shown() -> None:
    one, other = np.array([1, 2]), np.array([0.1 + 2j, 3])
    assert beside(one, other, (0,)) == "0.1+2j instead of 1"
    assert beside(np.array(True), np.array(1 / 3), ()) == "0.333333333 instead of True"
