"""A sketch of a tensor: sixteen numbers from which the distance of two tensors is estimated, without their elements.

A sketch is a linear map of the elements in their logical (C) order, which depends on their number alone: strides and
shape do not matter, their order does. Its signs are pseudo-random and fixed (`sketch_map`), so sketches of any two
machines and releases belong together. A changed map needs a new key in dump.json.

The elements are cut into blocks of 65,536; block 0 is left as it is, each other one has its sixteen numbers rotated and
given signs. Within a block whole groups of 8,192 elements are taken as rows of 512: a row is multiplied by three sign
vectors, which follow one another in four sets from row to row, and each product is added to one of the sixteen numbers,
with a sign. What is left at the end, up to 8,191 elements, is multiplied by sixteen sign vectors, so that small tensors
have the exact error of a random projection. Up to sixteen elements are their own sketch.

For a difference d of two tensors of other elements, the squared length of the difference of their sketches has the
mean ||d||^2. Its relative standard error is sqrt(2/16) = 0.35 (of the length 0.18) where d is spread out, and none
where d is one element; where d lies within a single row of a tensor of more than 8,191 elements, it is sqrt(2/3) = 0.82
(0.42). Measured: of twenty kinds of structured differences 95 of 100 draws or more are estimated at 0.4 to 1.9 of what
they are, of those within one row 92 (tests/unit/arrays/test_sketch.py). Rounding in float32 is 1e-7 of the norm of the
tensor, 3e-7 below 8,192 elements.
"""

from __future__ import annotations

import binascii
import math
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

import numpy as np

from msprobe_ms.arrays import sketch_map
from msprobe_ms.arrays.sketch_map import BLOCK, GROUP, LENGTH, ROW, SETS

#: What the text of a sketch stands for.
_FLOAT32, _FLOAT64 = Struct(f"<{LENGTH}f"), Struct(f"<{LENGTH}d")

#: Elements made wide at once.
_WIDENED = 1 << 20

#: By the size of a float in bytes: values up to this have sums, also over a whole block.
_LARGEST = {4: 1e30, 8: 1e300}

#: Elements multiplied at once: a BLAS begins threads for products of more, which would keep a core from the training.
_MULTIPLIED = 4 * BLOCK

#: Columns of a transposed matrix that are copied at once.
_COLUMNS = 32


class Projected(NamedTuple):
    """The sketch of a piece of a tensor, and the sum of those of its elements that are taken in whole `groups`."""

    numbers: np.ndarray
    total: float = 0.0


def project(flat: np.ndarray, maximum: float, minimum: float, first: int = 0) -> Projected | None:
    """Compute the sketch of a piece of a tensor.

    ``flat`` are float32 or float64 numbers, contiguous, ``first`` is how many elements lie before them, a multiple of
    ``BLOCK``; all but the last piece have a multiple of ``BLOCK``, too. Sketches of pieces add up. None where there are
    NaN or infinities, which ``maximum`` and ``minimum`` tell, or where a sum overflows.
    """
    largest = max(maximum, -minimum)
    if largest <= _LARGEST[flat.dtype.itemsize]:
        return _project(flat, first)
    if flat.dtype.itemsize == 4 and math.isfinite(largest):  # a NaN is the maximum and the minimum of all
        starts = range(0, flat.size, _WIDENED)
        pieces = [_project(flat[start : start + _WIDENED].astype(np.float64), first + start) for start in starts]
        return Projected(np.sum([each.numbers for each in pieces], axis=0), sum(each.total for each in pieces))
    return None


def _project(flat: np.ndarray, first: int) -> Projected:
    size, itemsize = flat.size, flat.dtype.itemsize
    if first == 0 and size <= LENGTH:
        few = np.zeros(LENGTH)
        few[:size] = flat
        return Projected(few)
    if size < ROW:
        return Projected(flat.dot(sketch_map.rest_vectors(itemsize)[:size]).astype(np.float64))
    in_groups = groups(size)
    if not in_groups:
        return Projected(_rest(flat))
    found = _folded(flat[: min(in_groups, _MULTIPLIED)], first)
    for start in range(_MULTIPLIED, in_groups, _MULTIPLIED):
        found += _folded(flat[start : min(in_groups, start + _MULTIPLIED)], first + start)
    numbers = found[:LENGTH]
    return Projected(numbers + _rest(flat[in_groups:]) if size > in_groups else numbers, float(found[LENGTH]))


def _folded(flat: np.ndarray, first: int) -> np.ndarray:
    """The sketch of whole groups of elements, and their sum, (17)."""
    rows = flat.size // ROW
    view = flat.reshape(rows // SETS, SETS, ROW).transpose(1, 0, 2)
    products = np.matmul(view, sketch_map.vectors(flat.dtype.itemsize)).reshape(-1)
    places, signs = sketch_map.folding(first // BLOCK, rows)
    return np.bincount(places, products * signs, LENGTH + 1)


def _rest(flat: np.ndarray) -> np.ndarray:
    vectors = sketch_map.rest_vectors(flat.dtype.itemsize)
    rows, left = divmod(flat.size, ROW)
    products = flat[: rows * ROW].reshape(rows, ROW).dot(vectors).reshape(-1)
    if left:
        products = np.concatenate((products, flat[rows * ROW :].dot(vectors[:left])))
    return products.astype(np.float64).dot(sketch_map.rest_folding()[: products.size])


def sketch(array: np.ndarray, first: int = 0) -> np.ndarray | None:
    """Compute the sketch of an array of any shape: sixteen numbers; None where there are none for all its elements.

    Integers and booleans are taken as numbers, a complex number as its real and its imaginary part, one after the
    other. None: no element, NaN or infinity among them, or no numbers at all. ``first`` as of `project`.
    """
    if array.size == 0 or array.dtype.kind not in "fiubc":
        return None
    flat = in_order(array).ravel()
    if flat.dtype.kind == "c":
        flat, first = flat.view(flat.real.dtype), 2 * first
    found = []
    for start in range(0, flat.size, _WIDENED):
        piece = _wide(flat[start : start + _WIDENED])
        range_ = (1.0, 0.0) if flat.dtype.kind == "b" else (float(piece.max()), float(piece.min()))
        projected = project(piece, *range_, first + start)
        if projected is None:
            return None
        found.append(projected.numbers)
    return together(found)


def is_transposed(array: np.ndarray) -> bool:
    """Whether an array is a large matrix, neighbours in the order of whose elements lie far apart in memory."""
    return array.ndim == 2 and array.size > BLOCK and abs(array.strides[0]) < abs(array.strides[1])


def in_order(array: np.ndarray) -> np.ndarray:
    """Return the array with its elements in C order; a copy where it is not contiguous."""
    if not is_transposed(array):
        return np.ascontiguousarray(array)
    # A few columns at once, which takes half to three quarters of the time of all.
    copy = np.empty(array.shape, array.dtype)
    for start in range(0, array.shape[1], _COLUMNS):
        copy[:, start : start + _COLUMNS] = array[:, start : start + _COLUMNS]
    return copy


def together(parts: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """Add up the sketches of the parts of a tensor; None where one has none."""
    known = [part for part in parts if part is not None]
    if not known or len(known) != len(parts):
        return None
    return known[0] if len(known) == 1 else np.sum(known, axis=0)


def _wide(piece: np.ndarray) -> np.ndarray:
    narrow = piece.dtype.kind == "b" or (piece.dtype.kind == "f" and piece.dtype.itemsize <= 4)
    return piece.astype(np.float32 if narrow else np.float64, copy=False)


class Steps(NamedTuple):
    """How a device computes a sketch with products and sums alone; the host does the rest, in `finished_text`.

    ``groups`` elements are taken as rows (set, 512), multiplied by each of ``vectors`` (3, 4, 512) and summed. The
    products of each ``BLOCK`` elements, and of those left, in the order row, vector, are multiplied by ``folding``
    (16, 384) and summed. What is left of the elements is taken in rows of 512 and a last one that is shorter, each
    multiplied by ``rest`` (16, 512) and summed. All these sums one after another are what `finished_text` takes.
    """

    vectors: np.ndarray
    folding: np.ndarray
    rest: np.ndarray


@lru_cache(maxsize=1)
def steps() -> Steps:
    """Return the tables of `Steps` in float64."""
    folding = sketch_map.row_folding()[:, 1:, :LENGTH].reshape(-1, LENGTH).T
    vectors = sketch_map.vectors(8)[..., 1:].transpose(2, 0, 1)
    return Steps(*map(np.ascontiguousarray, (vectors, folding, sketch_map.rest_vectors(8).T)))


def groups(size: int) -> int:
    """Return how many of the elements of a tensor are taken as groups of rows."""
    return size - size % GROUP


def finished_text(numbers: np.ndarray, size: int, dtype: np.dtype) -> str | None:
    """Return the text of the sketch of a tensor of ``size`` elements, from what a device made of `Steps`.

    Of up to sixteen elements ``numbers`` are the elements. None where one is NaN or infinite.
    """
    if not np.isfinite(numbers).all():
        return None
    return encode(_finish(numbers.astype(np.float64), size), dtype)


def _finish(numbers: np.ndarray, size: int) -> np.ndarray:
    if size <= LENGTH:
        return np.concatenate((numbers, np.zeros(LENGTH - size)))
    blocks = -(-groups(size) // BLOCK)
    left = numbers[blocks * LENGTH :]
    found = left.dot(sketch_map.rest_folding()[: left.size])
    if not blocks:
        return found
    signs, places = sketch_map.blocks(0, blocks)
    folded = numbers[: blocks * LENGTH].reshape(blocks, LENGTH) * signs[:, :LENGTH]
    return found + np.bincount(places[:, :LENGTH].ravel(), folded.ravel(), LENGTH)


def encode(numbers: np.ndarray, dtype: np.dtype) -> str:
    """Turn a sketch of a tensor of this dtype into its text (docs/format.md, "Sketches")."""
    exact = dtype.kind in "iu" or dtype.itemsize // (2 if dtype.kind == "c" else 1) > 4
    return text(_FLOAT64.pack(*numbers.tolist()), exact=exact)


def text(raw: bytes, *, exact: bool) -> str:
    """Turn sixteen float64 into the text of a sketch, in float32 unless ``exact`` or too large for that."""
    if not exact:
        with suppress(OverflowError):
            raw = _FLOAT32.pack(*_FLOAT64.unpack(raw))
    return binascii.b2a_base64(raw, newline=False).decode("ascii")


def decode(text: str) -> np.ndarray | None:
    """Decode the text of a sketch: sixteen numbers in float64; None for a text that is none."""
    try:
        raw = binascii.a2b_base64(text)
    except ValueError:
        return None
    if len(raw) not in (_FLOAT32.size, _FLOAT64.size):
        return None
    numbers = np.frombuffer(raw, "<f4" if len(raw) == _FLOAT32.size else "<f8").astype(np.float64)
    return numbers if np.isfinite(numbers).all() else None


def distance(first: np.ndarray, second: np.ndarray) -> float:
    """Estimate ||a - b||, the Euclidean distance of two tensors of as many elements, from their sketches.

    The relative standard error is about sqrt(1/32) = 0.18: 95 % of structured differences are estimated at 0.6 to 1.4
    of what they are. Of up to sixteen elements it is exact. See the top of this module for differences within one row.
    """
    return float(np.linalg.norm(first - second))


def norm(numbers: np.ndarray) -> float:
    """Estimate the Euclidean norm of a tensor from its sketch; as `distance` from zero."""
    return float(np.linalg.norm(numbers))


def inner_product(first: np.ndarray, second: np.ndarray) -> float:
    """Estimate the inner product of two tensors of as many elements, from their sketches.

    The standard error is about ||a|| ||b|| sqrt((1 + cosine^2) / 16).
    """
    return float(first.dot(second))


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    """Estimate the cosine of two tensors of as many elements, from their sketches; NaN where one of them is zero.

    The standard error is about (1 - cosine^2) / 4: near 1 and -1 it is small.
    """
    norms = float(np.linalg.norm(first)) * float(np.linalg.norm(second))
    return inner_product(first, second) / norms if norms else math.nan
