"""Statistics of tensors on the host: Max, Min, Mean, Norm and a checksum, of whole arrays and of arrays in parts.

All four accumulate in at least float32 whatever the tensor's dtype, so a float16 norm does not overflow. Tensors too
large to be copied as a whole are read in parts: whatever makes a tensor's numbers readable copies it (widening of
bfloat16, gathering of what is not contiguous, reading from a device).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

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

#: Elements from which on a tensor is read in parts, and those of a part.
LARGE, PART = 1 << 24, 1 << 22

Index = tuple[int | slice, ...]


class Statistics(NamedTuple):
    """Max, Min, Mean and L2 norm; None where a statistic has no meaning (empty tensors, the Mean of booleans)."""

    maximum: Statistic
    minimum: Statistic
    mean: Statistic
    norm: Statistic


_NOTHING = Statistics(None, None, None, None)


def statistics(array: np.ndarray) -> Statistics:
    """Compute the statistics of an array of any shape and numeric dtype.

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
    flat = array.ravel("K")  # in the order of memory, which matters to none of them: a view wherever there can be one
    if kind == "f" and flat.dtype.itemsize in (4, 8):
        maximum, minimum, total, squares = _reduce(flat)
    else:
        maximum, minimum, total, squares = _reduce_in_parts(flat)
    return Statistics(maximum, minimum, total / array.size, math.sqrt(squares))


def _reduce_in_parts(flat: np.ndarray) -> tuple[float, float, float, float]:
    # numpy warns of overflow and NaN here; both are results to report, not mistakes of ours.
    with np.errstate(all="ignore"):
        parts = (flat[start : start + _WIDENED] for start in range(0, flat.size, _WIDENED))
        maxima, minima, totals, squares = zip(*(_reduce(_accumulable(part)) for part in parts), strict=True)
        return float(np.max(maxima)), float(np.min(minima)), sum(totals), sum(squares)


def _accumulable(part: np.ndarray) -> np.ndarray:
    if part.dtype.kind == "c":
        part = np.abs(part)
    return part.astype(np.float32 if part.dtype.kind == "f" and part.dtype.itemsize < 4 else np.float64, copy=False)


def _reduce(flat: np.ndarray) -> tuple[float, float, float, float]:
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
    """Compute the CRC-32 of the raw little-endian bytes, eight hexadecimal digits (the format calls it ``md5``)."""
    contiguous = np.ascontiguousarray(array)
    if contiguous.dtype.byteorder == ">":
        contiguous = contiguous.astype(contiguous.dtype.newbyteorder("<"))
    return f"{isal_zlib.crc32(contiguous.reshape(-1).view(np.uint8)):08x}"


class StatisticsCache:
    """Statistics by place in memory, as long as it holds the same. Lives for one step.

    In one step a tensor is met several times: as the result of a call, of the module around it, as the argument of the
    next. A checksum of it takes a quarter of the time of its statistics.

    Nothing is taken on trust: frameworks write in place, and give memory they freed to other tensors, without telling.
    What is found at a place is known again by dtype, size and CRC-32; a change that keeps the CRC-32 of the bytes goes
    unseen, one in four billion.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, np.dtype, bool], tuple[int, Statistics]] = {}

    def statistics(self, place: tuple[int, int], array: np.ndarray) -> tuple[Statistics, int]:
        """Return ``statistics(array)``, of any shape, and the CRC-32 of its bytes in the order of memory.

        ``place`` is the address of the tensor and the number of its bytes.
        """
        flat = array.ravel("K")
        checksum = isal_zlib.crc32(flat)
        key = (*place, array.dtype, array.ndim == 0)  # a scalar's norm has a sign
        known = self._known.get(key)
        if known is None or known[0] != checksum:
            known = self._known[key] = checksum, statistics(array if array.ndim == 0 else flat)
        return known[1], checksum


def is_large(shape: Sequence[int]) -> bool:
    """Whether a tensor of this shape is to be read in parts."""
    return math.prod(shape) > LARGE


def parts(shape: Sequence[int], most: int = PART) -> Iterator[Index]:
    """Yield indices that cut an array into parts of at most ``most`` elements, in the order of its elements.

    >>> list(parts((2, 5), 3))
    [(0, slice(0, 3, None)), (0, slice(3, 6, None)), (1, slice(0, 3, None)), (1, slice(3, 6, None))]
    """
    row = math.prod(shape[1:])
    if row > most:
        for index in range(shape[0]):
            for rest in parts(shape[1:], most):
                yield (index, *rest)
    else:
        step = most // max(row, 1)
        for start in range(0, shape[0], step):
            yield (slice(start, start + step),)


class ChunkedStatistics:
    """Statistics, size and checksum of a tensor whose parts come one by one."""

    def __init__(self, arrays: Iterable[np.ndarray], *, md5: bool) -> None:
        found: list[tuple[int, Statistics]] = []
        self.nbytes, crc = 0, 0
        for array in arrays:
            found.append((array.size, statistics(array)))
            self.nbytes += array.nbytes
            if md5:
                crc = isal_zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8), crc)
        self.statistics = _together(found)
        #: As `checksum` of the whole.
        self.md5 = f"{crc:08x}" if md5 else None


def _together(found: Sequence[tuple[int, Statistics]]) -> Statistics:
    """Means and norms are added in double; NaN and infinity propagate as in one array."""
    known = [(size, part) for size, part in found if part.maximum is not None]
    if not known:
        return Statistics(None, None, None, None)
    maximum: Any = np.max([part.maximum for _, part in known])
    minimum: Any = np.min([part.minimum for _, part in known])
    if maximum.dtype == bool:
        return Statistics(bool(maximum), bool(minimum), None, None)
    squares = sum(float(part.norm or 0) * float(part.norm or 0) for _, part in known)
    count = sum(size for size, _ in known)
    mean = sum(size / count * float(part.mean or 0) for size, part in known)  # no sum of all: it may overflow
    return Statistics(float(maximum), float(minimum), mean, math.sqrt(squares))
