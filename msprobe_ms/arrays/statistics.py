"""Statistics of tensors on the host: Max, Min, Mean, Norm, a sketch and a checksum, of arrays whole and in parts.

All four accumulate in at least float32 whatever the tensor's dtype, so a float16 norm does not overflow. Tensors too
large to be copied as a whole are read in parts: whatever makes a tensor's numbers readable copies it (widening of
bfloat16, gathering of what is not contiguous, reading from a device).

Where the extension is built, `one_pass` computes all of it but the checksum; else, and of what it does not read, numpy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from isal import isal_zlib

from msprobe_ms.arrays import one_pass
from msprobe_ms.arrays import sketch as sketches
from msprobe_ms.arrays.one_pass import Elements
from msprobe_ms.arrays.sketch_map import BLOCK

#: A statistic as dump.json holds it: a number (``nan``/``inf`` included), a bool, a text, or nothing.
Statistic = float | int | bool | str | None

#: Elements summed in one dot product; partial sums are added in double, so the error does not grow with the tensor. Of
#: a constant it is 1e-6 of the norm, with eight times as many 8e-6.
_BLOCK = 1 << 13

#: Elements of a row of which the sum is taken; sums of rows are added in double.
_ROW = 1 << 10

#: Elements of a narrow or integer tensor made wide at once: whatever its size, no wide copy of it is held.
_WIDENED = 1 << 20

#: Squares of float32 values below this lose digits.
_SMALL = 1e-15

#: Elements from which on a tensor is read in parts, and those of a part.
LARGE, PART = 1 << 24, 1 << 20

Index = tuple[int | slice, ...]


class Statistics(NamedTuple):
    """Max, Min, Mean and L2 norm; None where a statistic has no meaning (empty tensors, the Mean of booleans)."""

    maximum: Statistic
    minimum: Statistic
    mean: Statistic
    norm: Statistic


#: Of a tensor without elements, or without any that can be read.
NOTHING = Statistics(None, None, None, None)


def statistics(array: np.ndarray) -> Statistics:
    """Compute the statistics of an array of any shape and numeric dtype.

    Empty: four times None. Booleans: Max and Min as booleans, no Mean, no Norm. Complex: of the magnitude. Integers:
    computed in double. 0-d: all four are the value. NaN and infinity propagate; a zero is 0, whatever its sign.
    """
    kind = array.dtype.kind
    if array.size == 0 or kind not in "fiubc":
        return NOTHING
    if kind == "b":
        return Statistics(bool(array.max()), bool(array.min()), None, None)
    if sketches.is_transposed(array):
        # In the order of memory, in a twentieth of the time; the last digit of sums may differ.
        array = array.T
    if (elements := one_pass.elements_of(array)) is not None:
        return _of_sums(one_pass.sums(elements, sketch=False), array.shape)
    if array.ndim == 0:
        value = float(abs(array)) + 0.0 if kind == "c" else float(array) + 0.0
        return Statistics(value, value, value, value)
    with np.errstate(all="ignore"):
        return _of_sums(_sums(array), array.shape)


def statistics_and_sketch(array: np.ndarray, first: int = 0) -> tuple[Statistics, np.ndarray | None]:
    """Compute `statistics` and the sketch of an array; the sum of its elements is had from the same pass.

    ``first`` is how many elements of the same tensor lie before it, a multiple of ``BLOCK``.
    """
    if sketches.is_transposed(array):
        array = sketches.in_order(array)
    if (elements := one_pass.elements_of(array)) is not None:
        found = one_pass.sums(elements, sketch=True, first=first)
        return _of_sums(found, array.shape, array.dtype.kind == "b"), None if found.sketch is None else np.frombuffer(
            found.sketch
        )
    return _by_numpy(array, first)


def _by_numpy(array: np.ndarray, first: int) -> tuple[Statistics, np.ndarray | None]:
    # numpy would tell of overflow and NaN, as the script wants to be told: both are results here, no mistakes of ours.
    with np.errstate(all="ignore"):
        if array.size == 0 or array.ndim == 0 or array.dtype.kind not in "fiu":
            return statistics(array), sketches.sketch(array, first)
        sums = _sums(array, first)
        return _of_sums(sums, array.shape), sums.sketch if array.flags.c_contiguous else sketches.sketch(array, first)


class _Sums(NamedTuple):
    """Of numbers in the order they were given."""

    maximum: float
    minimum: float
    total: float
    squares: float
    sketch: np.ndarray | None = None


def _of_sums(sums: _Sums | one_pass.Sums, shape: Sequence[int], boolean: bool = False) -> Statistics:
    maximum, minimum, total, squares, _ = sums
    if boolean:
        return Statistics(maximum > 0, minimum > 0, None, None)
    if not shape:
        return Statistics(maximum, maximum, maximum, maximum)
    return Statistics(maximum, minimum, total / math.prod(shape), math.sqrt(squares))


def _sums(array: np.ndarray, first: int | None = None) -> _Sums:
    """The sums of all elements, and their sketch where ``first`` tells their place."""
    flat = array.ravel("K")  # in the order of memory, which matters to no statistic: a view wherever there can be one
    if flat.dtype.kind == "f" and flat.dtype.itemsize in (4, 8) and flat.size <= _WIDENED:
        return _reduce(flat, first)
    starts = range(0, flat.size, _WIDENED)
    found = [
        _reduce(_accumulable(flat[start : start + _WIDENED]), None if first is None else first + start)
        for start in starts
    ]
    maxima, minima, totals, squares, known = zip(*found, strict=True)
    return _Sums(float(np.max(maxima)), float(np.min(minima)), sum(totals), sum(squares), sketches.together(known))


def _accumulable(part: np.ndarray) -> np.ndarray:
    if part.dtype.kind == "c":
        part = np.abs(part)
    elif part.dtype == np.float16:
        return _halves().take(part.view(np.uint16))  # in half the time that numpy takes to widen them
    return part.astype(np.float32 if part.dtype.kind == "f" and part.dtype.itemsize <= 4 else np.float64, copy=False)


@lru_cache(maxsize=1)
def _halves() -> np.ndarray:
    """Every float16 as float32, by its bits."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


def _reduce(flat: np.ndarray, first: int | None = None) -> _Sums:
    """Reduce float32 or float64 numbers."""
    maximum, minimum = float(np.maximum.reduce(flat)) + 0.0, float(np.minimum.reduce(flat)) + 0.0
    projected = None if first is None else sketches.project(flat, maximum, minimum, first)
    rest = flat if projected is None else flat[sketches.groups(flat.size) :]
    total = _sum(rest) if rest.size else 0.0
    if projected is not None:
        total += projected.total
    squares = _squares(flat)
    if flat.dtype.itemsize == 4 and math.isfinite(maximum) and math.isfinite(minimum):
        # Finite values whose float32 sums overflowed or underflowed: once more in double.
        if not math.isfinite(total):
            total = sum(map(_sum, _widened(flat)))
        if not math.isfinite(squares) or 0 < max(maximum, -minimum) < _SMALL:
            squares = sum(map(_squares, _widened(flat)))
    return _Sums(maximum, minimum, total + 0.0, squares, None if projected is None else projected.numbers)


def _widened(flat: np.ndarray) -> Iterator[np.ndarray]:
    return (flat[start : start + _BLOCK].astype(np.float64) for start in range(0, flat.size, _BLOCK))


def _sum(flat: np.ndarray) -> float:
    """A quarter of the time of ``flat.sum()``, and more exact."""
    rows = flat.size // _ROW
    if not rows:
        return float(flat.dot(_ONES[flat.dtype.itemsize][: flat.size]))
    whole = flat[: rows * _ROW].reshape(rows, _ROW)
    if flat.size < _BLOCK:
        total = float(whole.dot(_ONES[flat.dtype.itemsize]).sum(dtype=np.float64))
    else:
        total = float(np.einsum("i->", np.einsum("ij->i", whole), dtype=np.float64))
    rest = flat[rows * _ROW :]
    return total + _sum(rest) if rest.size else total


#: By the size of a float in bytes.
_ONES: dict[int, np.ndarray] = {4: np.ones(_ROW, np.float32), 8: np.ones(_ROW, np.float64)}


def _squares(flat: np.ndarray) -> float:
    if flat.size <= _BLOCK:
        return float(flat.dot(flat))
    rows = flat.size // _BLOCK
    whole, rest = flat[: rows * _BLOCK], flat[rows * _BLOCK :]
    squares = np.matmul(whole.reshape(rows, 1, _BLOCK), whole.reshape(rows, _BLOCK, 1))
    return float(squares.sum(dtype=np.float64)) + float(rest.dot(rest))


def checksum(array: np.ndarray) -> str:
    """Compute the CRC-32 of the raw little-endian bytes, eight hexadecimal digits (the format calls it ``md5``)."""
    contiguous = np.ascontiguousarray(array)
    if contiguous.dtype.byteorder == ">":
        contiguous = contiguous.astype(contiguous.dtype.newbyteorder("<"))
    return f"{isal_zlib.crc32(contiguous.reshape(-1).view(np.uint8)):08x}"


class Known(NamedTuple):
    """What is known of a tensor: its statistics, the text of its sketch, the CRC-32 of its bytes in memory's order."""

    statistics: Statistics
    sketch: str | None
    checksum: int


class StatisticsCache:
    """Statistics by place in memory, as long as it holds the same. Lives for one step.

    In one step a tensor is met several times: as the result of a call, of the module around it, as the argument of the
    next. A checksum of it takes a tenth of the time that numpy takes for its statistics. `one_pass` takes no longer,
    so that this serves where it does not read, or where checksums are asked for.

    Nothing is taken on trust: frameworks write in place, and give memory they freed to other tensors, without telling.
    What is found at a place is known again by dtype, size and CRC-32; a change that keeps the CRC-32 of the bytes goes
    unseen, one in four billion. A sketch is one of the order of elements, too, so that each layout has its own.
    """

    def __init__(self, *, sketch: bool = True) -> None:
        self._sketch = sketch
        self._known: dict[tuple[int, int, np.dtype, bool], dict[Layout, Known]] = {}

    def statistics(self, place: tuple[int, int], array: np.ndarray) -> Known:
        """Return ``statistics(array)``, of any shape, with its sketch, unless that is not asked for.

        ``place`` is the address of the tensor and the number of its bytes. What is known already is the same object.
        """
        checksum = isal_zlib.crc32(array.ravel("K"))
        key = (*place, array.dtype, array.ndim == 0)  # a scalar's norm has a sign
        layout: Layout = None if array.flags.c_contiguous else (array.shape, array.strides)
        layouts = self._known.setdefault(key, {})
        known = layouts.get(layout)
        if known is None or known.checksum != checksum:
            same = [each for each in list(layouts.values()) if each.checksum == checksum]
            found, sketch = self._summary(array)
            known = layouts[layout] = Known(same[0].statistics if same else found, sketch, checksum)
        return known

    def _summary(self, array: np.ndarray) -> tuple[Statistics, str | None]:
        return summary(array) if self._sketch else (statistics(array), None)


#: Shape and strides of what is not contiguous; None for the others.
Layout = tuple[tuple[int, ...], tuple[int, ...]] | None


def summary(array: np.ndarray) -> tuple[Statistics, str | None]:
    """Compute the statistics of an array, and the text of its sketch, if it has one."""
    if sketches.is_transposed(array):
        array = sketches.in_order(array)
    if (elements := one_pass.elements_of(array)) is not None:
        return summary_of(elements, sketch=True)
    found, sketch = _by_numpy(array, 0)
    return found, _sketch_text(sketch, array.dtype)


def summary_of(elements: Elements, *, sketch: bool) -> tuple[Statistics, str | None]:
    """Compute the same, the sketch where asked for, of a tensor's memory; only where `one_pass` is built."""
    found = one_pass.sums(elements, sketch=sketch)
    statistics = _of_sums(found, elements.shape, elements.kind == one_pass.BOOLEAN)
    if found.sketch is None:
        return statistics, None
    return statistics, sketches.text(found.sketch, exact=elements.kind in one_pass.EXACT)


def _sketch_text(sketch: np.ndarray | None, dtype: np.dtype) -> str | None:
    return None if sketch is None else sketches.encode(sketch, dtype)


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
    """Statistics, sketch, size and checksum of a tensor whose parts come one by one, in the order of its elements."""

    def __init__(self, arrays: Iterable[np.ndarray], *, md5: bool, sketch: bool = False) -> None:
        self.nbytes, self._crc = 0, 0
        found: list[tuple[int, Statistics]] = []
        known: list[np.ndarray | None] = []
        read = self._read(arrays, md5=md5)
        dtype, size = np.dtype(np.float32), 0
        for array in _in_blocks(read) if sketch else read:
            part, sums = statistics_and_sketch(array, size) if sketch else (statistics(array), None)
            found.append((array.size, part))
            known.append(sums)
            dtype, size = array.dtype, size + array.size
        self.statistics = together(found)
        #: As the whole has it.
        self.sketch = _sketch_text(sketches.together(known), dtype)
        #: As `checksum` of the whole.
        self.md5 = f"{self._crc:08x}" if md5 else None

    def _read(self, arrays: Iterable[np.ndarray], *, md5: bool) -> Iterator[np.ndarray]:
        for array in arrays:
            self.nbytes += array.nbytes
            if md5:
                self._crc = isal_zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8), self._crc)
            yield array


def _in_blocks(arrays: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Cut the elements of ``arrays`` anew, so that all but the last part are a multiple of ``BLOCK``."""
    left: list[np.ndarray] = []
    for array in arrays:
        flat = array.ravel()
        lacking = -sum(each.size for each in left) % BLOCK
        if left and flat.size >= lacking:
            yield np.concatenate((*left, flat[:lacking]))
            left, flat = [], flat[lacking:]
        whole = 0 if left else flat.size - flat.size % BLOCK
        if whole:
            yield flat[:whole]
        if flat.size > whole:
            left.append(flat[whole:].copy())  # a part may be overwritten by the next
    if left:
        yield np.concatenate(left)


def together(found: Sequence[tuple[int, Statistics]]) -> Statistics:
    """Join the statistics of the parts of a tensor, each with the number of its elements.

    Means and norms are added in double; NaN and infinity propagate as in one array.
    """
    known = [(size, part) for size, part in found if part.maximum is not None]
    if not known:
        return NOTHING
    maximum: Any = np.max([part.maximum for _, part in known])
    minimum: Any = np.min([part.minimum for _, part in known])
    if maximum.dtype == bool:
        return Statistics(bool(maximum), bool(minimum), None, None)
    squares = sum(float(part.norm or 0) * float(part.norm or 0) for _, part in known)
    count = sum(size for size, _ in known)
    scale = 2.0 ** count.bit_length()  # the sum of all may overflow; a power of two costs no digits
    total = sum(size / scale * float(part.mean or 0) for size, part in known)
    return Statistics(float(maximum), float(minimum), total / (count / scale), math.sqrt(squares))
