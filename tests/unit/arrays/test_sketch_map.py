"""The signs of sketches: fixed, balanced, and each number of a sketch as likely as the others."""

from __future__ import annotations

import numpy as np
import pytest

from msprobe_ms.arrays import sketch_map
from msprobe_ms.arrays.sketch_map import LENGTH, ROW, SETS

#: The first signs of the first vector of each set.
SIGNS = ["--+-+++-", "+-++-+--", "--+---+-", "--+-+++-"]


def test_signs_of_vectors_are_those_of_all_releases() -> None:
    first = sketch_map.vectors(4)[:, :8, 1]
    assert ["".join("+-"[int(sign < 0)] for sign in row) for row in first] == SIGNS


@pytest.mark.parametrize("length", [4, 16, 64, 256])
def test_neighbours_add_up_to_what_they_do_on_average(length: int) -> None:
    for vectors in (sketch_map.vectors(8)[..., 1:].transpose(0, 2, 1), 4 * sketch_map.rest_vectors(8).T):
        sums = vectors.reshape(-1, length).sum(-1)
        assert np.array_equal(np.abs(sums), np.full(sums.shape, length**0.5))


def test_vectors_are_signs_that_differ() -> None:
    every = np.vstack(
        [sketch_map.vectors(8)[..., 1:].transpose(0, 2, 1).reshape(-1, ROW), 4 * sketch_map.rest_vectors(8).T]
    )
    assert np.array_equal(np.abs(every), np.ones(every.shape))
    products = np.abs(every @ every.T - ROW * np.eye(len(every)))
    assert products.max() < 6 * ROW**0.5
    assert np.array_equal(sketch_map.vectors(4)[..., 0], np.ones((SETS, ROW)))


def test_each_number_takes_as_many_products() -> None:
    folding = sketch_map.row_folding()
    used = np.abs(folding[:, 1:, :LENGTH]) > 0
    assert np.array_equal(used.sum(-1), np.ones(used.shape[:2]))
    assert np.array_equal(used.sum((0, 1)), np.full(LENGTH, used.sum() // LENGTH))
    assert np.allclose((folding[:, 1:, :LENGTH] ** 2).sum((1, 2)), 1)


def test_blocks_are_rotated_and_signed() -> None:
    signs, places = sketch_map.blocks(0, 300)
    assert np.array_equal(np.sort(places, axis=1), np.tile(np.arange(LENGTH + 1), (300, 1)))
    assert np.array_equal(places[0], np.arange(LENGTH + 1)) and np.array_equal(signs[0], np.ones(LENGTH + 1))
    assert len({tuple(row) for row in signs[:256] * (1 + places[:256])}) == 256
    for first, count in ((0, 1), (7, 200), (250, 20), (290, 5)):
        some = sketch_map.blocks(first, count)
        assert all(map(np.array_equal, some, (signs[first : first + count], places[first : first + count])))


def test_products_are_added_block_by_block() -> None:
    """Those of each row of a block go to the numbers that `row_folding` says, turned and signed as the block is."""
    rows = sketch_map.row_folding()
    for block, count in ((0, 128), (0, 16), (5, 300)):
        places, signs = sketch_map.folding(block, count)
        assert places.shape == signs.shape == (4 * count,)
        in_rows = np.arange(4 * count).reshape(SETS, -1, 4).transpose(1, 0, 2).reshape(count, 4)
        of_blocks, to = sketch_map.blocks(block, -(-count // 128))
        for row in range(0, count, 7):
            for vector, product in enumerate(in_rows[row]):
                (number,) = np.flatnonzero(rows[row % 128, vector])
                assert places[product] == to[row // 128, number]
                assert signs[product] == of_blocks[row // 128, number] * rows[row % 128, vector, number]
