"""Metrics of two arrays: how far they are apart, as plain numbers in double precision, in blocks, inputs untouched.

With t the target, g the golden, d = |t − g| and n elements:

* ``cosine``                       t·g / (‖t‖₂ ‖g‖₂)
* ``euclidean_distance``           ‖t − g‖₂
* ``max_absolute_error``           max d
* ``max_relative_error``           max d/|g|, where a golden 0 counts as the epsilon of its dtype
* ``one_thousandth_ratio``         share of elements with d/|g| < 0.001, likewise
* ``five_thousandths_ratio``       share of elements with d/|g| < 0.005, likewise
* ``accumulated_relative_error``   Σ d / Σ |g|
* ``relative_euclidean_distance``  ‖t − g‖₂ / ‖g‖₂
* ``kl_divergence``                KL(softmax(g) ‖ softmax(t)), see ``Divergence``
* ``mean_absolute_error``          Σ d / n
* ``root_mean_square_error``       sqrt(Σ d² / n)
* ``mean_relative_error``          Σ (d/|g|) / n, where a golden 0 counts as above

Sources: the first six are the columns of msprobe for real data; the others those that the accuracy analyzer of Huawei's
CANN adds ("Parameters in a Complete Model Comparison Result"), which names them and leaves the formulas to convention.
"""

from __future__ import annotations

import math
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
    COMPLEX = "complex"

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

#: Measured only where a report shows them: they take half as long again.
ACCUMULATED_RELATIVE = "accumulated_relative_error"
RELATIVE_EUCLIDEAN = "relative_euclidean_distance"
KL_DIVERGENCE = "kl_divergence"
MEAN_ABSOLUTE = "mean_absolute_error"
ROOT_MEAN_SQUARE = "root_mean_square_error"
MEAN_RELATIVE = "mean_relative_error"
MORE_METRICS = (
    ACCUMULATED_RELATIVE, RELATIVE_EUCLIDEAN, KL_DIVERGENCE, MEAN_ABSOLUTE, ROOT_MEAN_SQUARE, MEAN_RELATIVE,
)  # fmt: skip

#: Elements a block: its doubles stay in a core's second-level cache and below what malloc hands back to the system;
#: measured from 2^12 to 2^18 the fastest, twice as fast as 2^15.
_BLOCK = 1 << 13
#: What is computed in, by whether there are complex numbers and whether squares need the range of long doubles.
_WIDE: dict[tuple[bool, bool], np.dtype] = {
    (False, False): np.dtype(np.float64),
    (False, True): np.dtype(np.longdouble),
    (True, False): np.dtype(np.complex128),
    (True, True): np.dtype(np.clongdouble),
}
#: From here on whole numbers have no double of their own.
_BEYOND_DOUBLES = 2.0**53
#: A sum of squares below it may have lost terms to underflow.
_SMALLEST_SQUARES = 1e-280


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
    """Running sums over blocks, in doubles or in long doubles (``number``), whose squares are always in range."""

    more: bool
    long: bool = False
    target: Any = 0.0
    golden: Any = 0.0
    dot: Any = 0.0
    error: Any = 0.0
    absolute: Any = 0.0
    relative: Any = 0.0
    magnitude: Any = 0.0
    max_absolute: Any = 0.0
    max_relative: Any = 0.0
    within_one: int = 0
    within_five: int = 0
    one_sided: bool = False

    def lost_terms(self, golden: Array) -> bool:
        """Whether squares left the range of doubles."""
        if not math.isfinite(self.target + self.golden + self.error):
            return True
        least = min(self.error, self.golden) if golden.dtype.char in "dD" else self.error
        return bool(self.max_absolute > 0 and least < _SMALLEST_SQUARES)

    def number(self, value: Any) -> Any:
        return np.longdouble(value) if self.long else float(value)


def tensor_difference(target: Array, golden: Array, *, more: bool = False) -> TensorDifference:
    """Metrics of two arrays of any shape and dtype (bf16 already widened); complex arrays compare as complex.

    NaN beside NaN, or an infinity beside the same infinity, count as equal zeros; at any other non-finite place the
    arrays cannot be measured (``Missing.NON_FINITE``). ``more`` measures ``MORE_METRICS`` as well.

    It takes one pass; a second one, in long doubles, where squares leave the range of doubles (beyond 1e150).
    """
    names = (*TENSOR_METRICS, *MORE_METRICS) if more else TENSOR_METRICS
    if target.shape != golden.shape:
        return _unmeasured(names, Missing.SHAPE, math.inf)
    if target.size == 0:
        return _unmeasured(names, Missing.EMPTY, 0.0)
    mine, theirs = target.reshape(-1), golden.reshape(-1)
    is_complex = "c" in (mine.dtype.kind, theirs.dtype.kind)
    divergence = Divergence() if more and not is_complex else None
    sums = _accumulate(_Sums(more), mine, theirs, divergence)
    if sums.one_sided:
        return _unmeasured(names, Missing.NON_FINITE, math.inf)
    if sums.lost_terms(theirs):
        sums = _accumulate(_Sums(more, long=True), mine, theirs, None)
    metrics = _named(sums, target.ndim, target.size)
    if more:
        metrics[KL_DIVERGENCE] = Missing.COMPLEX if divergence is None else divergence.value()
        if target.size == 1:
            metrics[KL_DIVERGENCE] = Missing.SINGLE if target.ndim else Missing.SCALAR
    return TensorDifference(
        metrics,
        relative(sums.error**0.5, sums.golden**0.5),
        float((sums.error / target.size) ** 0.5),
        float((sums.golden / target.size) ** 0.5),
    )


def relative(error: Any, scale: Any) -> float:
    """``error / scale``; nothing over nothing is 0, something over nothing is inf."""
    if scale > 0:
        return float(error / scale)
    return 0.0 if error == 0 else float("inf")


def _unmeasured(names: tuple[str, ...], reason: Missing, deviation: float) -> TensorDifference:
    return TensorDifference(dict.fromkeys(names, reason), deviation, deviation, 0.0)


def _accumulate(sums: _Sums, target: Array, golden: Array, divergence: Divergence | None) -> _Sums:
    is_complex = "c" in (target.dtype.kind, golden.dtype.kind)
    wide = _WIDE[is_complex, sums.long]
    whole = target.dtype.kind in "iu" and golden.dtype.kind in "iu" and 8 in (target.itemsize, golden.itemsize)
    epsilon = float(np.finfo(golden.dtype if golden.dtype.kind in "fc" else np.float64).eps)
    for start in range(0, target.size, _BLOCK):
        place = slice(start, start + _BLOCK)
        mine: Array = target[place].astype(wide)
        theirs: Array = golden[place].astype(wide)
        with np.errstate(all="ignore"):
            squares, finite = _squares(mine, theirs), None
            if not math.isfinite(squares[0] + squares[1]):
                finite = np.isfinite(mine) & np.isfinite(theirs)
                if not _equalise(mine, theirs, finite):
                    sums.one_sided = True
                    return sums
                squares = _squares(mine, theirs)
            sums.target += sums.number(squares[0])
            sums.golden += sums.number(squares[1])
            sums.dot += sums.number(np.vdot(theirs, mine).real)
            difference = mine - theirs
            if divergence is not None:
                divergence.add(mine, theirs, difference, finite)
            if whole and max(squares) >= _BEYOND_DOUBLES**2:
                difference = _whole_difference(target[place], golden[place])
            _add_block(sums, _magnitude(difference), _magnitude(theirs), epsilon)
    return sums


def _squares(target: Array, golden: Array) -> tuple[Any, Any]:
    return np.vdot(target, target).real, np.vdot(golden, golden).real


def _magnitude(array: Array) -> Array:
    """|array|, in place where that is possible."""
    return np.abs(array) if array.dtype.kind == "c" else np.abs(array, out=array)


def _whole_difference(target: Array, golden: Array) -> Array:
    """target − golden, exact before it is rounded once: a long double holds every whole number of 8 bytes."""
    difference: Array = target.astype(np.longdouble) - golden.astype(np.longdouble)
    return difference.astype(np.float64)


def _equalise(target: Array, golden: Array, finite: Array) -> bool:
    """Set places where both hold the same NaN or infinity to 0, in our copies; False when such a place is one-sided."""
    if finite.all():
        return True
    odd_target, odd_golden = target[~finite], golden[~finite]
    if not ((odd_target == odd_golden) | (np.isnan(odd_target) & np.isnan(odd_golden))).all():
        return False
    target[~finite] = 0
    golden[~finite] = 0
    return True


def _add_block(sums: _Sums, difference: Array, magnitude: Array, epsilon: float) -> None:
    """``difference`` and ``magnitude`` (of the golden) are at least 0, and are used up."""
    size, largest = difference.size, difference.max()
    if sums.more:
        sums.magnitude += sums.number(magnitude.sum())
    if largest == 0:
        sums.within_one += size
        sums.within_five += size
        return
    sums.error += sums.number(np.dot(difference, difference))
    sums.max_absolute = max(sums.max_absolute, sums.number(largest))
    if sums.more:
        sums.absolute += sums.number(difference.sum())
    magnitude[magnitude == 0] = epsilon
    np.divide(difference, magnitude, out=difference)
    largest = difference.max()
    sums.max_relative = max(sums.max_relative, sums.number(largest))
    sums.within_one += size if largest < 0.001 else int(np.count_nonzero(difference < 0.001))
    sums.within_five += size if largest < 0.005 else int(np.count_nonzero(difference < 0.005))
    if sums.more:
        sums.relative += sums.number(difference.sum())


def _named(sums: _Sums, dimensions: int, size: int) -> dict[str, Measured]:
    metrics: dict[str, Measured] = {
        COSINE: _cosine(sums),
        EUCLIDEAN: float(sums.error**0.5),
        MAX_ABSOLUTE: float(sums.max_absolute),
        MAX_RELATIVE: float(sums.max_relative),
        ONE_THOUSANDTH: sums.within_one / size,
        FIVE_THOUSANDTHS: sums.within_five / size,
    }
    if dimensions == 0:
        metrics.update(dict.fromkeys((COSINE, EUCLIDEAN, ONE_THOUSANDTH, FIVE_THOUSANDTHS), Missing.SCALAR))
    elif size == 1:
        metrics[COSINE] = Missing.SINGLE
    if sums.more:
        metrics |= {
            ACCUMULATED_RELATIVE: relative(sums.absolute, sums.magnitude),
            RELATIVE_EUCLIDEAN: relative(sums.error**0.5, sums.golden**0.5),
            KL_DIVERGENCE: Missing.SINGLE,
            MEAN_ABSOLUTE: float(sums.absolute / size),
            ROOT_MEAN_SQUARE: float((sums.error / size) ** 0.5),
            MEAN_RELATIVE: float(sums.relative / size),
        }
    return metrics


def _cosine(sums: _Sums) -> Measured:
    epsilon = float(np.finfo(np.float64).eps)
    target, golden = sums.target**0.5, sums.golden**0.5
    if target <= epsilon and golden <= epsilon:
        return 1.0
    if target <= epsilon or golden <= epsilon:
        return Missing.ZERO_VECTOR
    return max(-1.0, min(1.0, float(sums.dot / target / golden)))


Doubles = npt.NDArray[np.float64]


class Divergence:
    """KL(P‖Q) = Σ P ln(P/Q) in nats, P = softmax(g) of the golden, Q = softmax(t) of the target, over all elements.

    Source: Kullback & Leibler, On Information and Sufficiency (1951); softmax, as tensors of a net are no
    distributions: any finite numbers will do, and for logits P and Q are what the net says.

    With Z the sum of exponentials, KL = Σ P (g − t) − ln Z(g) + ln Z(t). The three sums are kept relative to the
    largest element so far, and rescaled when a larger one comes (as in online softmax), so one pass is enough and no
    exponential overflows. Costs two exponentials an element.
    """

    def __init__(self) -> None:
        self._golden_top = self._target_top = -math.inf
        self._golden_sum = self._target_sum = self._weighted = 0.0

    def add(self, target: Doubles, golden: Doubles, difference: Doubles, finite: npt.NDArray[np.bool_] | None) -> None:
        """A block of doubles and their target − golden; where ``finite`` is False both hold the same NaN or infinity.

        Those places take no part: a masked logit of −inf has no probability on either side.
        """
        if finite is not None:
            target, golden, difference = target[finite], golden[finite], difference[finite]
            if not target.size:
                return
        weights, self._golden_top, shrink = _exponentials(golden, self._golden_top)
        self._golden_sum = self._golden_sum * shrink + float(weights.sum())
        self._weighted = self._weighted * shrink - _weighted(weights, difference)
        weights, self._target_top, shrink = _exponentials(target, self._target_top)
        self._target_sum = self._target_sum * shrink + float(weights.sum())

    def value(self) -> float:
        """The divergence, at least 0 (rounding may leave it a few 1e-16 below); inf beyond double precision."""
        if not self._golden_sum:
            return 0.0
        tops = self._target_top - self._golden_top
        divergence = self._weighted / self._golden_sum + tops + math.log(self._target_sum / self._golden_sum)
        return max(0.0, divergence) if divergence == divergence else math.inf


def _exponentials(block: Doubles, top: float) -> tuple[Doubles, float, float]:
    """exp(block − top) with the new largest element as top, and what earlier sums are to be multiplied by."""
    new = max(top, float(block.max()))
    shrink = math.exp(top - new) if top > -math.inf else 0.0
    shifted: npt.NDArray[Any] = block - new
    return np.exp(shifted, out=shifted), new, shrink


def _weighted(weights: Doubles, difference: Doubles) -> float:
    total = float(np.dot(weights, difference))
    if total == total:
        return total
    likely = weights > 0  # a difference that overflows counts only where it has a weight
    return float(np.dot(weights[likely], difference[likely]))
