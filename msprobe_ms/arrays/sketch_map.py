"""The fixed signs of sketches, and what is made of them: the linear map from the elements of a tensor to its sketch.

A sign is a bit of SplitMix64, so it is the same on every machine and in every release. `sketch` says how the tables
are used.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

#: Numbers of a sketch.
LENGTH = 16

#: Elements of a block. Parts of a tensor begin at a multiple of it.
BLOCK = 1 << 16

#: Elements of a row and of a group of rows, and the sets of sign vectors that rows have in turn.
ROW, GROUP, SETS = 512, 1 << 13, 4
_ROWS = BLOCK // ROW

#: Sign vectors of a row; the column of ones before them gives the plain sum of the elements.
_VECTORS = 3

#: Blocks whose signs are at hand: those of 16 million elements.
_BLOCKS = 256


def _random(first: int, count: int) -> np.ndarray:
    """``count`` numbers of 64 random bits: SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
    Generators, OOPSLA 2014), started with 0, from its result number ``first`` on."""
    z = (np.arange(first, first + count, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _signs(first: int, *shape: int) -> np.ndarray:
    """Signs from the bits of `_random`, least significant first; 1 for a set bit."""
    count = math.prod(shape)
    bits = _random(first, -(-count // 64))[:, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)
    return (2.0 * bits.ravel()[:count] - 1).reshape(shape)


def sign_vectors(first: int, count: int) -> np.ndarray:
    """Sign vectors of a row, (count, 512), no two elements of which are correlated.

    Of four neighbours one differs from the others in sign, of four neighbouring fours likewise, and so on: the sums of
    2, 4, 8, 16 over 4, 16, 64, 256 elements have the size that they have on average. So a constant is estimated well.
    """
    signs = _signs(first, count, 2)
    signs[:, 1] = signs[:, 0] * (-1.0) ** np.arange(count)  # two halves are together as often as they are opposed
    while (width := signs.shape[1]) < ROW:
        first += signs.size
        odd = (_random(first, signs.size) >> np.uint64(62)).astype(np.int64).reshape(count, width, 1)
        signs = np.where(np.arange(4) == odd, -signs[..., None], signs[..., None]).reshape(count, 4 * width)
    return signs


#: Where in `_random` the signs of each table begin.
_OF_VECTORS, _OF_ROWS, _OF_REST, _OF_REST_ROWS, _OF_BLOCKS = 0, 1 << 16, 2 << 16, 3 << 16, 1 << 32


@lru_cache(maxsize=2)
def vectors(itemsize: int) -> np.ndarray:
    """Of each set the column of ones and the sign vectors, (4, 512, 4), of the float of this size."""
    ones = np.ones((SETS, 1, ROW))
    signs = sign_vectors(_OF_VECTORS, SETS * _VECTORS).reshape(SETS, _VECTORS, ROW)
    columns = np.concatenate((ones, signs), axis=1)
    return columns.astype(f"f{itemsize}").transpose(0, 2, 1)  # so laid out it takes the least time


@lru_cache(maxsize=1)
def row_folding() -> np.ndarray:
    """What makes of the sum and the products of each row of a block a sketch and the sum, (128, 4, 17)."""
    row = np.arange(_ROWS)[:, None]
    rotations = (_random(_OF_ROWS, _ROWS // LENGTH) & np.uint64(15)).astype(np.int64).repeat(LENGTH)[:, None]
    numbers = (row % LENGTH * _VECTORS + np.arange(_VECTORS) + rotations) % LENGTH
    folding = np.zeros((_ROWS, 1 + _VECTORS, LENGTH + 1))
    folding[:, 0, LENGTH] = 1
    signs = _signs(_OF_ROWS + _ROWS, _ROWS, _VECTORS) / math.sqrt(_VECTORS)
    np.put_along_axis(folding[:, 1:], numbers[..., None], signs[..., None], axis=2)
    return folding


@lru_cache(maxsize=64)
def folding(block: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Of each product of as many rows from the begin of a block on its place among sum and sketch, and its sign.

    In the order in which matmul gives the products: set, row of the set, vector.
    """
    tables = row_folding()
    number, sign = np.abs(tables).argmax(axis=2), tables.sum(axis=2)  # (128, 4)
    signs, places = blocks(block, -(-rows // _ROWS))
    in_order = [
        table.reshape(-1, 1 + _VECTORS)[:rows].reshape(-1, SETS, 1 + _VECTORS).transpose(1, 0, 2).ravel()
        for table in (places[:, number], signs[:, number] * sign)
    ]
    return in_order[0], in_order[1]


@lru_cache(maxsize=2)
def rest_vectors(itemsize: int) -> np.ndarray:
    """Sixteen sign vectors, a quarter in length, (512, 16)."""
    return np.ascontiguousarray(sign_vectors(_OF_REST, LENGTH).T / math.sqrt(LENGTH), f"f{itemsize}")


@lru_cache(maxsize=1)
def rest_folding() -> np.ndarray:
    """What makes of the products of up to sixteen rows a sketch, where row 0 is left as it is, (16 * 16, 16)."""
    row, number = np.ogrid[:LENGTH, :LENGTH]
    folding = np.zeros((LENGTH, LENGTH, LENGTH))
    signs = _signs(_OF_REST_ROWS, LENGTH, LENGTH)
    signs[0] = 1
    folding[row, number, (row + number) % LENGTH] = signs
    return folding.reshape(-1, LENGTH)


@lru_cache(maxsize=1)
def _first_blocks() -> tuple[np.ndarray, np.ndarray]:
    return _made_blocks(0, _BLOCKS)


def _made_blocks(first: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    bits = _random(_OF_BLOCKS + first, count)[:, None]
    if first == 0:
        bits[0] = 0xFFFF  # rotated by nothing, all signs positive
    signs, places = np.ones((count, LENGTH + 1)), np.full((count, LENGTH + 1), LENGTH)
    signs[:, :LENGTH] = 2.0 * (bits >> np.arange(LENGTH, dtype=np.uint64) & np.uint64(1)) - 1
    places[:, :LENGTH] = (np.arange(LENGTH) + (bits >> np.uint64(60)).astype(np.int64)) % LENGTH
    return signs, places


def blocks(first: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Signs and places of the sixteen numbers and the sum of each block, (count, 17); the sum stays as it is."""
    if first + count > _BLOCKS:
        return _made_blocks(first, count)
    signs, places = _first_blocks()
    return signs[first : first + count], places[first : first + count]
