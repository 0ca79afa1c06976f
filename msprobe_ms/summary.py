"""A tensor's figures: Max, Min, Mean, Norm and a checksum, on the host.

All four accumulate in at least float32 whatever the tensor's dtype, so a float16 norm does not overflow.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from isal import isal_zlib

from msprobe_ms.store.model import Statistic

#: Elements summed in one dot product; partial sums are added in double, so the error does not grow with the tensor.
_BLOCK = 1 << 16

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
    # numpy warns of overflow and NaN here; both are results to report, not mistakes of ours.
    with np.errstate(all="ignore"):
        if array.ndim == 0:
            value = float(abs(array)) if kind == "c" else float(array)
            return Statistics(value, value, value, value)
        return _of_numbers(_as_accumulable(array))


def _as_accumulable(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "c":
        array = np.abs(array)
    if array.dtype.kind != "f":
        return array.astype(np.float64)
    return array.astype(np.float32) if array.dtype.itemsize < 4 else array


def _of_numbers(array: np.ndarray) -> Statistics:
    flat = array.reshape(-1)
    maximum, minimum, mean, norm = float(flat.max()), float(flat.min()), float(flat.mean()), _norm(flat)
    if math.isfinite(maximum) and math.isfinite(minimum):
        # Finite values whose float32 sums overflowed or underflowed: once more in double.
        if not math.isfinite(mean):
            mean = float(flat.mean(dtype=np.float64))
        if not math.isfinite(norm) or 0 < max(maximum, -minimum) < _SMALL:
            norm = _norm(flat.astype(np.float64))
    return Statistics(maximum, minimum, mean, norm)


def _norm(flat: np.ndarray) -> float:
    if flat.size <= _BLOCK:
        return math.sqrt(flat.dot(flat))
    blocks = (flat[start : start + _BLOCK] for start in range(0, flat.size, _BLOCK))
    return math.sqrt(math.fsum(float(block.dot(block)) for block in blocks))


def checksum(array: np.ndarray) -> str:
    """CRC-32 of the raw little-endian bytes, eight lower-case hexadecimal digits (the format calls it ``md5``)."""
    contiguous = np.ascontiguousarray(array)
    if contiguous.dtype.byteorder == ">":
        contiguous = contiguous.astype(contiguous.dtype.newbyteorder("<"))
    return f"{isal_zlib.crc32(contiguous.reshape(-1).view(np.uint8)):08x}"
