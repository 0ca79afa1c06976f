"""A tensor's figures: Max, Min, Mean, Norm and a checksum, on the host.

All four accumulate in at least float32 whatever the tensor's dtype, so a float16 norm does not overflow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from isal import isal_zlib

#: A statistic as dump.json holds it: a number (``nan``/``inf`` included), a bool, a text, or nothing.
Statistic = float | int | bool | str | None

#: Elements summed in one dot product; partial sums are added in double, so the error does not grow with the tensor.
_BLOCK = 1 << 16

#: Elements of a row of which the sum is taken; sums of rows are added in double.
_ROW = 1 << 10

#: Elements of a narrow or integer tensor made wide at once: whatever its size, no wide copy of it is held.
_WIDENED = 1 << 20

#: Squares of float32 values below this lose digits.
_SMALL = 1e-15


class Statistics(NamedTuple):
    """Max, Min, Mean and L2 norm; None where a figure has no meaning (empty tensors, the Mean of booleans)."""

    maximum: Statistic
    minimum: Statistic
    mean: Statistic
    norm: Statistic


_NOTHING = Statistics(None, None, None, None)


def statistics(array: np.ndarray) -> Statistics:
    """Figures of an array of any shape and numeric dtype.

    Empty: four times None. Booleans: Max and Min as booleans, no Mean, no Norm. Complex: of the magnitude. Integers:
    computed in double. 0-d: all four are the value. NaN and infinity propagate.
    """
    kind = array.dtype.kind
    if array.size == 0 or kind not in "fiubc":
        return _NOTHING
    if kind == "b":
        return Statistics(bool(array.max()), bool(array.min()), None, None)
    if array.ndim == 0:
        value = float(abs(array)) if kind == "c" else float(array)
        return Statistics(value, value, value, value)
    flat = array.ravel("K")  # in the order of memory, which figures do not depend on: a view wherever there can be one
    if kind == "f" and flat.dtype.itemsize in (4, 8):
        maximum, minimum, total, squares = _figures(flat)
    else:
        maximum, minimum, total, squares = _figures_of_parts(flat)
    return Statistics(maximum, minimum, total / array.size, math.sqrt(squares))


def _figures_of_parts(flat: np.ndarray) -> tuple[float, float, float, float]:
    # numpy warns of overflow and NaN here; both are results to report, not mistakes of ours.
    with np.errstate(all="ignore"):
        parts = (flat[start : start + _WIDENED] for start in range(0, flat.size, _WIDENED))
        maxima, minima, totals, squares = zip(*(_figures(_accumulable(part)) for part in parts), strict=True)
        return float(np.max(maxima)), float(np.min(minima)), sum(totals), sum(squares)


def _accumulable(part: np.ndarray) -> np.ndarray:
    if part.dtype.kind == "c":
        part = np.abs(part)
    return part.astype(np.float32 if part.dtype.kind == "f" and part.dtype.itemsize < 4 else np.float64, copy=False)


def _figures(flat: np.ndarray) -> tuple[float, float, float, float]:
    """Maximum, minimum, sum and sum of squares of float32 or float64 numbers; none of these operations warns."""
    maximum, minimum = float(np.maximum.reduce(flat)), float(np.minimum.reduce(flat))
    total, squares = _sum(flat), _squares(flat)
    if flat.dtype.itemsize == 4 and math.isfinite(maximum) and math.isfinite(minimum):
        # Finite values whose float32 sums overflowed or underflowed: once more in double.
        if not math.isfinite(total):
            total = sum(map(_sum, _widened(flat)))
        if not math.isfinite(squares) or 0 < max(maximum, -minimum) < _SMALL:
            squares = sum(map(_squares, _widened(flat)))
    return maximum, minimum, total, squares


def _widened(flat: np.ndarray) -> Iterator[np.ndarray]:
    return (flat[start : start + _BLOCK].astype(np.float64) for start in range(0, flat.size, _BLOCK))


def _sum(flat: np.ndarray) -> float:
    """A quarter of the time of ``flat.sum()``, and more exact."""
    rows = flat.size // _ROW
    if not rows:
        return float(flat.dot(_ONES[flat.dtype.itemsize][: flat.size]))
    sums: np.ndarray = np.einsum("ij->i", flat[: rows * _ROW].reshape(rows, _ROW))
    total = float(np.einsum("i->", sums, dtype=np.float64))
    rest = flat[rows * _ROW :]
    return total + _sum(rest) if rest.size else total


#: By the size of a float in bytes.
_ONES: dict[int, np.ndarray] = {4: np.ones(_ROW, np.float32), 8: np.ones(_ROW, np.float64)}


def _squares(flat: np.ndarray) -> float:
    if flat.size <= _BLOCK:
        return float(flat.dot(flat))
    blocks = (flat[start : start + _BLOCK] for start in range(0, flat.size, _BLOCK))
    return sum(float(block.dot(block)) for block in blocks)


def checksum(array: np.ndarray) -> str:
    """CRC-32 of the raw little-endian bytes, eight lower-case hexadecimal digits (the format calls it ``md5``)."""
    contiguous = np.ascontiguousarray(array)
    if contiguous.dtype.byteorder == ">":
        contiguous = contiguous.astype(contiguous.dtype.newbyteorder("<"))
    return f"{isal_zlib.crc32(contiguous.reshape(-1).view(np.uint8)):08x}"
