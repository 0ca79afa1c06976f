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
* ``kl_divergence``                KL(softmax(g) ‖ softmax(t)), see ``block_sums.Divergence``
* ``mean_absolute_error``          Σ d / n
* ``root_mean_square_error``       sqrt(Σ d² / n)
* ``mean_relative_error``          Σ (d/|g|) / n, where a golden 0 counts as above
* ``standard_deviation``           sqrt(Σ |t − g − mean(t − g)|² / n)

Sources: the first six are the columns of msprobe for real data; the others those that the accuracy analyzer of Huawei's
CANN adds ("Parameters in a Complete Model Comparison Result"), which names them and leaves the formulas to convention.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from msprobe_ms.arrays.block_sums import Divergence, Spread
from msprobe_ms.support.translation import tr

Array = npt.NDArray[Any]


class Missing(str, Enum):
    """Why a metric has no number; each profile has its own token for it."""

    UNMATCHED = "unmatched"
    NO_DATA = tr("no data")
    SHAPE = tr("shape differs")
    NON_FINITE = tr("non-finite places differ")
    ZERO_VECTOR = tr("one side is zero")
    SCALAR = "scalar"
    SINGLE = tr("single element")
    EMPTY = "empty"
    COMPLEX = "complex"

    def __str__(self) -> str:
        return self.value


Measured = float | Missing

#: Names of the metrics; what each is stands in ``METRICS``.
COSINE = "cosine"
EUCLIDEAN = "euclidean_distance"
MAX_ABSOLUTE = "max_absolute_error"
MAX_RELATIVE = "max_relative_error"
ONE_THOUSANDTH = "one_thousandth_ratio"
FIVE_THOUSANDTHS = "five_thousandths_ratio"
ACCUMULATED_RELATIVE = "accumulated_relative_error"
RELATIVE_EUCLIDEAN = "relative_euclidean_distance"
KL_DIVERGENCE = "kl_divergence"
MEAN_ABSOLUTE = "mean_absolute_error"
ROOT_MEAN_SQUARE = "root_mean_square_error"
MEAN_RELATIVE = "mean_relative_error"
STANDARD_DEVIATION = "standard_deviation"

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

    ``metrics`` by the names of ``METRICS``; ``relative_l2`` = ‖t−g‖₂/‖g‖₂ (0 when equal, inf when one alone is not
    finite somewhere); ``error_rms`` and ``golden_rms`` are root mean squares over the elements finite on both sides.
    """

    metrics: dict[str, Measured]
    relative_l2: float
    error_rms: float
    golden_rms: float


@dataclass(slots=True)
class _Sums:
    """Running sums over blocks, in doubles or in long doubles (``number``), whose squares are always in range.

    ``size`` is the number of elements; ``more``: also the sums that only ``MORE_METRICS`` need; ``divergence`` is None
    where that is not measured.
    """

    size: int
    more: bool
    divergence: Divergence | None = None
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
    spread: Spread = field(default_factory=Spread)
    one_sided: bool = False

    def lost_terms(self, golden: Array) -> bool:
        """Whether squares left the range of doubles."""
        if not math.isfinite(self.target + self.golden + self.error):
            return True
        least = min(self.error, self.golden) if golden.dtype.char in "dD" else self.error
        return bool(self.max_absolute > 0 and least < _SMALLEST_SQUARES)

    def number(self, value: Any) -> Any:
        return np.longdouble(value) if self.long else float(value)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of two tensors, an entry of ``METRICS``.

    ``name``           key in ``TensorDifference.metrics``
    ``title``          title of its column in a table
    ``formula``        its value, from the sums over all blocks; tensors are not empty, and finite in the same places
    ``undefined_for``  the tensors for which it says why it has no value: SCALAR (0-d), SINGLE (one element), COMPLEX
    ``msprobe``        the first version of msprobe whose tables have the column; "" for those of our own report alone,
                       which are measured only where a report shows them: they take half as long again
    """

    name: str
    title: str
    formula: Callable[[_Sums], Measured]
    undefined_for: tuple[Missing, ...] = ()
    msprobe: str = ""

    def of(self, sums: _Sums, reasons: tuple[Missing, ...]) -> Measured:
        """Return the value, or why tensors with these ``reasons`` have none."""
        for reason in reasons:
            if reason in self.undefined_for:
                return reason
        return self.formula(sums)


def _cosine(sums: _Sums) -> Measured:
    epsilon = float(np.finfo(np.float64).eps)
    target, golden = sums.target**0.5, sums.golden**0.5
    if target <= epsilon and golden <= epsilon:
        return 1.0
    if target <= epsilon or golden <= epsilon:
        return Missing.ZERO_VECTOR
    return max(-1.0, min(1.0, float(sums.dot / target / golden)))


def _relative_euclidean(sums: _Sums) -> float:
    return relative(sums.error**0.5, sums.golden**0.5)


def _root_mean_square(sums: _Sums) -> float:
    return float((sums.error / sums.size) ** 0.5)


def _standard_deviation(sums: _Sums) -> float:
    return float((sums.spread.squares / sums.size) ** 0.5)


def _divergence(sums: _Sums) -> Measured:
    assert sums.divergence is not None  # of real numbers, where more is measured, it is there
    return sums.divergence.value()


_SCALAR, _SINGLE = (Missing.SCALAR,), (Missing.SCALAR, Missing.SINGLE)

#: All metrics of real data, those of msprobe first. What lists metrics anywhere takes them from here.
METRICS = (
    Metric(COSINE, "Cosine", _cosine, _SINGLE, "1.1.0"),
    Metric(EUCLIDEAN, "EucDist", lambda sums: float(sums.error**0.5), _SCALAR, "26"),
    Metric(MAX_ABSOLUTE, "MaxAbsErr", lambda sums: float(sums.max_absolute), (), "1.1.0"),
    Metric(MAX_RELATIVE, "MaxRelativeErr", lambda sums: float(sums.max_relative), (), "1.1.0"),
    Metric(ONE_THOUSANDTH, "One Thousandth Err Ratio", lambda sums: sums.within_one / sums.size, _SCALAR, "1.1.0"),
    Metric(FIVE_THOUSANDTHS, "Five Thousandths Err Ratio", lambda sums: sums.within_five / sums.size, _SCALAR, "1.1.0"),
    Metric(ACCUMULATED_RELATIVE, "AccumulatedRelativeError", lambda sums: relative(sums.absolute, sums.magnitude)),
    Metric(RELATIVE_EUCLIDEAN, "RelativeEuclideanDistance", _relative_euclidean),
    Metric(KL_DIVERGENCE, "KullbackLeiblerDivergence", _divergence, (*_SINGLE, Missing.COMPLEX)),
    Metric(MEAN_ABSOLUTE, "MeanAbsoluteError", lambda sums: float(sums.absolute / sums.size)),
    Metric(ROOT_MEAN_SQUARE, "RootMeanSquareError", _root_mean_square),
    Metric(MEAN_RELATIVE, "MeanRelativeError", lambda sums: float(sums.relative / sums.size)),
    Metric(STANDARD_DEVIATION, "StandardDeviation", _standard_deviation),
)
_ALWAYS = tuple(metric for metric in METRICS if metric.msprobe)
#: Names of the metrics that are always measured, and of those measured only where a report shows them.
TENSOR_METRICS = tuple(metric.name for metric in _ALWAYS)
MORE_METRICS = tuple(metric.name for metric in METRICS if not metric.msprobe)
#: Titles of columns by the name of the metric.
METRIC_TITLES: Mapping[str, str] = MappingProxyType({metric.name: metric.title for metric in METRICS})


def tensor_difference(target: Array, golden: Array, *, more: bool = False) -> TensorDifference:
    """Measure two arrays of any shape and dtype (bf16 already widened); complex arrays compare as complex.

    NaN beside NaN, or an infinity beside the same infinity, count as equal zeros; at any other non-finite place the
    arrays cannot be measured (``Missing.NON_FINITE``). ``more`` measures ``MORE_METRICS`` as well.

    It takes one pass; a second one, in long doubles, where squares leave the range of doubles (beyond 1e150).
    """
    measured = METRICS if more else _ALWAYS
    if target.shape != golden.shape:
        return _unmeasured(measured, Missing.SHAPE, math.inf)
    if target.size == 0:
        return _unmeasured(measured, Missing.EMPTY, 0.0)
    mine, theirs = target.reshape(-1), golden.reshape(-1)
    is_complex = "c" in (mine.dtype.kind, theirs.dtype.kind)
    divergence = Divergence() if more and not is_complex else None
    sums = _accumulate(_Sums(mine.size, more, divergence), mine, theirs)
    if sums.one_sided:
        return _unmeasured(measured, Missing.NON_FINITE, math.inf)
    if sums.lost_terms(theirs):
        sums = _accumulate(_Sums(mine.size, more, divergence, long=True), mine, theirs)
    reasons = _reasons(target, is_complex)
    return TensorDifference(
        {metric.name: metric.of(sums, reasons) for metric in measured},
        _relative_euclidean(sums),
        _root_mean_square(sums),
        float((sums.golden / sums.size) ** 0.5),
    )


def _reasons(target: Array, is_complex: bool) -> tuple[Missing, ...]:
    """For what some metrics are undefined and these tensors are."""
    found = {Missing.SCALAR: target.ndim == 0, Missing.SINGLE: target.size == 1, Missing.COMPLEX: is_complex}
    return tuple(reason for reason, applies in found.items() if applies)


def relative(error: Any, scale: Any) -> float:
    """Return ``error / scale``; nothing over nothing is 0, something over nothing is inf."""
    if scale > 0:
        return float(error / scale)
    return 0.0 if error == 0 else float("inf")


def _unmeasured(metrics: Iterable[Metric], reason: Missing, deviation: float) -> TensorDifference:
    return TensorDifference({metric.name: reason for metric in metrics}, deviation, deviation, 0.0)


def _accumulate(sums: _Sums, target: Array, golden: Array) -> _Sums:
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
            if sums.divergence is not None and not sums.long:  # which has had its pass then
                sums.divergence.add(mine, theirs, difference, finite)
            if whole and max(squares) >= _BEYOND_DOUBLES**2:
                difference = _whole_difference(target[place], golden[place])
            if sums.more:
                sums.spread.add(difference)
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
    target_rest, golden_rest = target[~finite], golden[~finite]
    if not ((target_rest == golden_rest) | (np.isnan(target_rest) & np.isnan(golden_rest))).all():
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
