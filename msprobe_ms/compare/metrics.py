"""How far two arrays are apart: plain numbers in double precision, in blocks, inputs untouched."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Missing(str, Enum):
    """Why a metric has no number; each profile has its own token for it."""

    UNMATCHED = "unmatched"
    NO_DATA = "no data"
    SHAPE = "shape differs"
    NON_FINITE = "non-finite places differ"
    ZERO_VECTOR = "one side is zero"
    SCALAR = "scalar"
    SINGLE = "single element"
    EMPTY = "empty"

    def __str__(self) -> str:
        return self.value


Measured = float | Missing

#: Metric names of real data, in the order of the report.
COSINE = "cosine"
EUCLIDEAN = "euclidean_distance"
MAX_ABSOLUTE = "max_absolute_error"
MAX_RELATIVE = "max_relative_error"
ONE_THOUSANDTH = "one_thousandth_ratio"
FIVE_THOUSANDTHS = "five_thousandths_ratio"
TENSOR_METRICS = (COSINE, EUCLIDEAN, MAX_ABSOLUTE, MAX_RELATIVE, ONE_THOUSANDTH, FIVE_THOUSANDTHS)

#: Elements a block: its doubles stay in a core's second-level cache and below what malloc hands back to the system;
#: measured from 2^12 to 2^18 the fastest, twice as fast as 2^15.
_BLOCK = 1 << 13


@dataclass(slots=True)
class TensorDifference:
    """What two arrays of one shape differ by.

    ``metrics`` by the names above; ``relative_l2`` = ‖t−g‖₂/‖g‖₂ (0 when equal, inf when one alone is not finite
    somewhere); ``error_rms`` and ``golden_rms`` are root mean squares over the elements finite on both sides.
    """

    metrics: dict[str, Measured]
    relative_l2: float
    error_rms: float
    golden_rms: float


@dataclass(slots=True)
class _Sums:
    """Running sums over blocks."""

    target: float = 0.0
    golden: float = 0.0
    dot: float = 0.0
    error: float = 0.0
    max_absolute: float = 0.0
    max_relative: float = 0.0
    within_one: int = 0
    within_five: int = 0
    one_sided: bool = False


def tensor_difference(target: Array, golden: Array) -> TensorDifference:
    """Metrics of two arrays of any shape and dtype (bf16 already widened); complex arrays compare as complex.

    NaN beside NaN, or an infinity beside the same infinity, count as equal zeros; at any other non-finite place the
    arrays cannot be measured (``Missing.NON_FINITE``).
    """
    if target.shape != golden.shape:
        return _unmeasured(Missing.SHAPE, float("inf"))
    if target.size == 0:
        return _unmeasured(Missing.EMPTY, 0.0)
    sums = _accumulate(target.reshape(-1), golden.reshape(-1))
    if sums.one_sided:
        return _unmeasured(Missing.NON_FINITE, float("inf"))
    return TensorDifference(
        _named(sums, target.ndim, target.size),
        relative(sums.error**0.5, sums.golden**0.5),
        (sums.error / target.size) ** 0.5,
        (sums.golden / target.size) ** 0.5,
    )


def relative(error: float, scale: float) -> float:
    """``error / scale``; nothing over nothing is 0, something over nothing is inf."""
    if scale > 0:
        return error / scale
    return 0.0 if error == 0 else float("inf")


def _unmeasured(reason: Missing, deviation: float) -> TensorDifference:
    return TensorDifference(dict.fromkeys(TENSOR_METRICS, reason), deviation, deviation, 0.0)


def _accumulate(target: Array, golden: Array) -> _Sums:
    sums = _Sums()
    wide = np.complex128 if "c" in (target.dtype.kind, golden.dtype.kind) else np.float64
    epsilon = np.finfo(golden.dtype if golden.dtype.kind in "fc" else np.float64).eps
    for start in range(0, target.size, _BLOCK):
        mine = target[start : start + _BLOCK].astype(wide)
        theirs = golden[start : start + _BLOCK].astype(wide)
        with np.errstate(all="ignore"):
            if not _equalise_non_finite(mine, theirs):
                sums.one_sided = True
                return sums
            _add_block(sums, mine, theirs, float(epsilon))
    return sums


def _equalise_non_finite(target: Array, golden: Array) -> bool:
    """Set places where both hold the same NaN or infinity to 0, in our copies; False when such a place is one-sided."""
    finite = np.isfinite(target) & np.isfinite(golden)
    if finite.all():
        return True
    odd_target, odd_golden = target[~finite], golden[~finite]
    if not ((odd_target == odd_golden) | (np.isnan(odd_target) & np.isnan(odd_golden))).all():
        return False
    target[~finite] = 0
    golden[~finite] = 0
    return True


def _add_block(sums: _Sums, target: Array, golden: Array, epsilon: float) -> None:
    difference = np.abs(target - golden)
    magnitude = np.abs(golden)
    sums.target += float(np.vdot(target, target).real)
    sums.golden += float(np.vdot(golden, golden).real)
    sums.dot += float(np.vdot(golden, target).real)
    sums.error += float(np.dot(difference, difference))
    sums.max_absolute = max(sums.max_absolute, float(difference.max()))
    magnitude[magnitude == 0] = epsilon
    np.divide(difference, magnitude, out=difference)
    sums.max_relative = max(sums.max_relative, float(difference.max()))
    sums.within_one += int(np.count_nonzero(difference < 0.001))
    sums.within_five += int(np.count_nonzero(difference < 0.005))


def _named(sums: _Sums, dimensions: int, size: int) -> dict[str, Measured]:
    metrics: dict[str, Measured] = {
        COSINE: _cosine(sums),
        EUCLIDEAN: sums.error**0.5,
        MAX_ABSOLUTE: sums.max_absolute,
        MAX_RELATIVE: sums.max_relative,
        ONE_THOUSANDTH: sums.within_one / size,
        FIVE_THOUSANDTHS: sums.within_five / size,
    }
    if dimensions == 0:
        metrics.update(dict.fromkeys((COSINE, EUCLIDEAN, ONE_THOUSANDTH, FIVE_THOUSANDTHS), Missing.SCALAR))
    elif size == 1:
        metrics[COSINE] = Missing.SINGLE
    return metrics


def _cosine(sums: _Sums) -> Measured:
    target, golden, epsilon = sums.target**0.5, sums.golden**0.5, float(np.finfo(np.float64).eps)
    if target <= epsilon and golden <= epsilon:
        return 1.0
    if target <= epsilon or golden <= epsilon:
        return Missing.ZERO_VECTOR
    return max(-1.0, min(1.0, sums.dot / (target * golden)))
