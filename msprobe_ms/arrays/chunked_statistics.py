"""Tensors too large to be copied as a whole: read in parts, so that nothing of their size is held beside them.

Whatever makes a tensor's numbers readable copies it: widening of bfloat16, gathering of what is not contiguous, reading
from a device.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from isal import isal_zlib

from msprobe_ms.arrays.statistics import Statistics, statistics

#: Elements from which on a tensor is read in parts, and those of a part.
LARGE, PART = 1 << 24, 1 << 22

Index = tuple[int | slice, ...]


def is_large(shape: Sequence[int]) -> bool:
    return math.prod(shape) > LARGE


def parts(shape: Sequence[int], most: int = PART) -> Iterator[Index]:
    """Indices that cut an array into parts of at most ``most`` elements, in the order of its elements.

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


class Parts:
    """Figures, size and checksum of a tensor whose parts come one by one."""

    def __init__(self, arrays: Iterable[np.ndarray], *, md5: bool) -> None:
        found: list[tuple[int, Statistics]] = []
        self.nbytes, crc = 0, 0
        for array in arrays:
            found.append((array.size, statistics(array)))
            self.nbytes += array.nbytes
            if md5:
                crc = isal_zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8), crc)
        self.figures = _together(found)
        #: As `summary.checksum` of the whole.
        self.md5 = f"{crc:08x}" if md5 else None


def _together(found: Sequence[tuple[int, Statistics]]) -> Statistics:
    """Means and norms are added in double; NaN and infinity propagate as in one array."""
    known = [(size, figures) for size, figures in found if figures.maximum is not None]
    if not known:
        return Statistics(None, None, None, None)
    maximum: Any = np.max([figures.maximum for _, figures in known])
    minimum: Any = np.min([figures.minimum for _, figures in known])
    if maximum.dtype == bool:
        return Statistics(bool(maximum), bool(minimum), None, None)
    squares = sum(float(figures.norm or 0) * float(figures.norm or 0) for _, figures in known)
    count = sum(size for size, _ in known)
    mean = sum(size / count * float(figures.mean or 0) for size, figures in known)  # no sum of all: it may overflow
    return Statistics(float(maximum), float(minimum), mean, math.sqrt(squares))
