"""Sparse modes drawn out: x is dropped."""

from __future__ import annotations

import numpy as np
import pytest

from msprobe_ms.accuracy.references.attention.mask import Mask

COMPRESSED = np.triu(np.ones((2048, 2048), np.uint8), 1)
PICTURES = [
    (2, (3, 5), "oxxxx ooxxx oooxx"),
    (3, (3, 5), "oooxx oooox ooooo"),
    (3, (4, 2), "xx xx ox oo"),
    # One before and none after, counted from the lower right.
    (4, (3, 5), "xooxx xxoox xxxoo"),
    (4, (3, 3), "oxx oox xoo"),
]


@pytest.mark.parametrize(("mode", "sizes", "picture"), PICTURES)
def test_pictures_of_the_modes(mode: int, sizes: tuple[int, int], picture: str) -> None:
    mask = Mask(COMPRESSED, mode, 1, 0, None, 1)
    rows = [mask.rows(0, 0, slice(row, row + 1), sizes) for row in range(sizes[0])]
    assert " ".join("".join("ox"[int(each)] for each in row[0]) for row in rows if row is not None) == picture


def test_the_given_mask_and_the_band_are_both_held_to_in_mode_0() -> None:
    given = np.zeros((3, 3), bool)
    given[2, 2] = True
    dropped = Mask(given, 0, 1, 0, None, 1).rows(0, 0, slice(0, 3), (3, 3))
    np.testing.assert_array_equal(dropped, [[0, 1, 1], [0, 0, 1], [1, 0, 1]])


def test_mode_1_reads_the_mask_alone() -> None:
    given = np.eye(3, dtype=bool)
    np.testing.assert_array_equal(Mask(given, 1, 0, 0, None, 1).rows(0, 0, slice(0, 3), (3, 3)), given)
