"""Measure the deviation of tensors from their statistics: of one pair, and of many, column by column.

Two texts of one formula: for one pair statistics may be missing, and those of integers are exact, which no column of
floats is. A dump of a training step has some 100,000 tensors; one by one their arithmetic would take most of a
comparison.

Two kinds of tensors are held apart. Of a tensor that a mask has filled (scores of which those that must not count were
set to -1e9, or -65504) everything else is rounding beside the fill, so the largest element tells of the others, and in
real data they are measured alone. A fill of -inf needs none of this: no sum takes it in. Where one side fills with -inf
and the other with a large number, what a softmax makes of it is the same: of their statistics Max alone tells.

And float32 statistics that are numbers of a narrower float show a cast to float16 or bfloat16 that no dtype shows: Max
and Min of a tensor that went through float16 are float16 numbers; of any other one in 2^13 is, by chance.

Nothing is held against less than the smallest normal number of its dtype, where both sides have it: below that floats
lie evenly spaced, so that their rounding is that of this number (IEEE 754-2019, section 3.3). Gradients of float16
without loss scaling are a few of these steps large.

Where both sides have a sketch, it estimates the distance of the two tensors, which is what a comparison of their files
measures. The larger of the two counts: the statistics show one large element better, the sketch all the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from msprobe_ms.arrays import sketch
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.metrics import TensorDifference, tensor_difference
from msprobe_ms.arrays.statistics import Statistic
from msprobe_ms.comparison.statistics import (
    STATISTICS,
    element_count,
    elements_of,
    have_sketches,
    magnitude,
    root_mean_square,
    without_ones,
)
from msprobe_ms.comparison.terms import GOLDEN, TARGET, Side
from msprobe_ms.dump.columns import ItemTable
from msprobe_ms.dump.model import Item

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int32]

#: What a statistic of one element counts beside those of all: a kernel's approximation may be coarse in one spot
#: (MindSpore's tanh on CPU is off by 1e-4 where it saturates, by 1e-6 elsewhere).
EXTREME = 0.1


def least_scale(target_dtype: str | None, golden_dtype: str | None) -> float:
    """Return the least root mean square that tensors of these dtypes are held against; what one side alone loses by
    being narrow counts whole."""
    return min(parse_dtype(target_dtype).smallest_normal, parse_dtype(golden_dtype).smallest_normal)


def statistic_deviation(target: Item, golden: Item, floor: float = 0.0) -> float | None:
    """Measure two tensors by their statistics and sketches as one relative difference; None if none is on both sides.

    ``floor``: least root mean square the tensor is held against (see ``Tolerances.gradient_floor``).
    """
    floor = max(floor, least_scale(target.dtype, golden.dtype))
    parts = four_statistics_deviation(target, golden, floor), sketch_deviation(target, golden, floor)
    return max((part for part in parts if part is not None), default=None)


def sketch_deviation(target: Item, golden: Item, floor: float = 0.0) -> float | None:
    """Estimate ‖t−g‖₂ / ‖g‖₂ from two sketches, to about a fifth; None where they do not tell it.

    They do not where the shapes differ by more than axes of length 1: the elements may be in another order.
    """
    if not have_sketches(target, golden):
        return None
    ours, theirs = sketch.decode(target.sketch or ""), sketch.decode(golden.sketch or "")
    if ours is None or theirs is None:
        return None
    size = magnitude(golden.norm) if isinstance(golden.norm, float) else sketch.norm(theirs)
    scale = max(size, floor * math.sqrt(max(1, element_count(golden))))
    return sketch.distance(ours, theirs) / scale if scale > 0 else None


def four_statistics_deviation(target: Item, golden: Item, floor: float = 0.0) -> float | None:
    """Measure Max, Min, Mean and Norm of two tensors as one relative difference; None if none is on both sides."""
    return max(_statistics_apart(target, golden, floor).values(), default=None)


def furthest_statistic(target: Item, golden: Item) -> str:
    """Return which of ``STATISTICS`` sets two tensors furthest apart; "" if none is on both sides."""
    parts = _statistics_apart(target, golden, 0.0)
    return max(parts, key=lambda name: parts[name], default="")


def _statistics_apart(target: Item, golden: Item, floor: float) -> dict[str, float]:
    """How far apart the statistics are, each relative to its own scale."""
    if (times := _size(golden) / _size(target)) != 1 and isinstance(target.norm, float):
        target = target._replace(norm=target.norm * math.sqrt(times))  # of the same numbers, held several times
    if are_filled_otherwise(target, golden):
        part = _part(target.maximum, golden.maximum, max(magnitude(golden.maximum), floor))
        return {} if part is None else {STATISTICS[0]: part}
    rms = max(root_mean_square(golden) or 0.0, floor)
    peak = max(magnitude(golden.maximum), magnitude(golden.minimum))
    length = math.sqrt(max(1, element_count(golden)))
    largest = magnitude(golden.maximum) if is_filled(golden.maximum, golden.minimum) else max(peak, rms)
    scales = (largest, max(peak, rms), rms or peak, max(magnitude(golden.norm), rms * length))
    found = {
        name: part
        for name, scale in zip(STATISTICS, scales, strict=True)
        if (part := _part(getattr(target, name), getattr(golden, name), scale)) is not None
    }
    whole = not found.keys().isdisjoint(STATISTICS[2:])
    share = EXTREME if whole and parse_dtype(golden.dtype).epsilon and rounded_side(target, golden) is None else 1.0
    return {name: part if name in STATISTICS[2:] else share * part for name, part in found.items()}


def _size(item: Item) -> int:
    return max(1, element_count(item))


def rounded_side(target: Item, golden: Item) -> Side | None:
    """Return the side on which alone float32 went through a narrower float; None where Max and Min do not show it."""
    ends = target.maximum, target.minimum, golden.maximum, golden.minimum
    if parse_dtype(golden.dtype).name != "float32" or not all(isinstance(end, float) for end in ends):
        return None
    mine, theirs = np.array([ends[:2]], np.float64), np.array([ends[2:]], np.float64)
    sides = zip((TARGET, GOLDEN), _rounded_alone(mine, theirs), strict=True)
    return next((side for side, found in sides if found[0]), None)


def _part(mine: Statistic, theirs: Statistic, scale: float) -> float | None:
    if not (isinstance(mine, (int, float)) and isinstance(theirs, (int, float))):
        return None
    if mine == theirs or (mine != mine and theirs != theirs):
        return 0.0
    delta = abs(mine - theirs)
    return delta / scale if scale > 0 and math.isfinite(delta) else math.inf


class StatisticColumns:
    """The statistics of a target's and a golden's items: Max, Min, Mean and Norm, n rows of 4; and their sketches."""

    def __init__(self, target: ItemTable, golden: ItemTable) -> None:
        self._target, self._golden = target, golden
        self._ours = np.frombuffer(target.statistics, np.float64).reshape(-1, 4)
        self._theirs = np.frombuffer(golden.statistics, np.float64).reshape(-1, 4)
        sorts = golden.known_sorts
        self._counts = np.array([elements_of(sort[3]) for sort in sorts], np.float64)
        self._shares = np.array([EXTREME if parse_dtype(sort[2]).epsilon else 1.0 for sort in sorts])
        self._single = np.array([parse_dtype(sort[2]).name == "float32" for sort in sorts])
        self._target_counts = np.array([elements_of(sort[3]) for sort in target.known_sorts], np.float64)
        self._normal, self._target_normal = (
            np.array([parse_dtype(sort[2]).smallest_normal for sort in table.known_sorts]) for table in (golden, target)
        )
        self._sorts = np.frombuffer(golden.sorts, np.uint32)
        self._target_sorts = np.frombuffer(target.sorts, np.uint32)
        codes: dict[object, int] = {}
        self._target_shapes, self._shapes = (
            np.array([codes.setdefault(without_ones(sort[3]), len(codes)) for sort in table.known_sorts])
            for table in (target, golden)
        )

    def deviations(
        self, ours: Sequence[int] | Whole, theirs: Sequence[int] | Whole, floors: Sequence[float] | Floats
    ) -> list[float]:
        """Measure the deviation of each pair of items, given by their numbers; as many as ``ours``.

        Both must be tensors with four statistics, all floats.
        """
        mine, golden = self._ours[np.asarray(ours, np.intp)], self._theirs[np.asarray(theirs, np.intp)]
        sorts = self._sorts[np.asarray(theirs, np.intp)]
        counts = self._counts[sorts]
        target_sorts = self._target_sorts[np.asarray(ours, np.intp)]
        target_counts = self._target_counts[target_sorts]
        least = np.maximum(floors, np.minimum(self._normal[sorts], self._target_normal[target_sorts]))
        with np.errstate(all="ignore"):
            mine[:, 3] *= np.sqrt(np.maximum(counts, 1) / np.maximum(target_counts, 1))
            sizes = np.where(np.isfinite(golden), np.abs(golden), 0.0)
            rms = np.where(counts > 0, sizes[:, 3] / np.sqrt(np.maximum(counts, 1)), 0.0)
            rms = np.maximum(rms, least)
            peak = np.maximum(sizes[:, 0], sizes[:, 1])
            extreme = np.maximum(peak, rms)
            filled = (golden[:, 1] <= FILL) & (sizes[:, 0] > 0) & (TIMES * sizes[:, 0] <= sizes[:, 1])
            largest = np.where(filled, sizes[:, 0], extreme)
            norm = np.maximum(sizes[:, 3], rms * np.sqrt(np.maximum(counts, 1)))
            scales = np.stack((largest, extreme, np.where(rms > 0, rms, peak), norm), axis=1)
            parts = _parts(mine, golden, scales)
        rounded = self._single[sorts] & rounded_on_one_side(mine[:, :2], golden[:, :2])
        ends = np.where(rounded, 1.0, self._shares[sorts])[:, None] * parts[:, :2]
        found = np.maximum(ends.max(axis=1), parts[:, 2:].max(axis=1))
        found = np.where(_filled_otherwise(mine, golden), self._of_maximum(mine, golden, least), found)
        if self._target.has_sketches and self._golden.has_sketches:
            alike = self._target_shapes[target_sorts] == self._shapes[sorts]
            found = np.fmax(found, np.where(alike, self._estimated(ours, theirs, norm), np.nan))
        deviations: list[float] = found.tolist()
        return deviations

    @staticmethod
    def _of_maximum(mine: Floats, golden: Floats, floors: Floats) -> Floats:
        with np.errstate(all="ignore"):
            scales = np.maximum(np.where(np.isfinite(golden[:, 0]), np.abs(golden[:, 0]), 0.0), floors)
            return _parts(mine[:, :1], golden[:, :1], scales[:, None])[:, 0]

    def _estimated(self, ours: Sequence[int] | Whole, theirs: Sequence[int] | Whole, scales: Floats) -> Floats:
        """The deviation that sketches estimate; NaN of items without, or without a scale."""
        with np.errstate(all="ignore"):
            apart = np.linalg.norm(self._target.sketches(ours) - self._golden.sketches(theirs), axis=1)
            estimated: Floats = np.where(scales > 0, apart / scales, np.nan)
        return estimated


def _parts(mine: Floats, golden: Floats, scales: Floats) -> Floats:
    delta = np.abs(mine - golden)
    parts = np.where((scales > 0) & np.isfinite(delta), delta / scales, np.inf)
    parts[(mine == golden) | (np.isnan(mine) & np.isnan(golden))] = 0.0
    return parts


#: A fill is at most this, and as many times larger than the largest element as this says: scores of a net are neither.
FILL, TIMES = -1e3, 100.0
#: Part of the fill that an element is at least as large as, which the fill was added to or put in the place of.
_PART = 0.5
#: Part of the fill up to which two elements are filled alike: the scores that one was added to round otherwise.
_ALIKE = 1e-5


def is_filled(maximum: Statistic, minimum: Statistic) -> bool:
    """Whether a tensor with these extremes holds a fill."""
    return holds_fill(maximum, minimum) and minimum != -np.inf and maximum != 0


def holds_fill(maximum: Statistic, minimum: Statistic) -> bool:
    """Whether a tensor with these extremes is a mask or filled by one, with -inf or a large number."""
    if not (isinstance(maximum, float) and isinstance(minimum, float)):
        return False
    return minimum <= FILL and TIMES * abs(maximum) <= -minimum


def are_filled_otherwise(target: Item, golden: Item) -> bool:
    """Whether one of two tensors is filled with -inf, the other with a large number."""
    ends = [[item.maximum, item.minimum] for item in (target, golden)]
    if not all(isinstance(end, float) for both in ends for end in both):
        return False
    return bool(_filled_otherwise(*(np.array([both], np.float64) for both in ends))[0])


def _filled_otherwise(mine: Floats, golden: Floats) -> npt.NDArray[np.bool_]:
    """The same of rows that begin with Max and Min."""
    found: npt.NDArray[np.bool_] = np.zeros(len(mine), np.bool_)
    for infinite, finite in ((mine, golden), (golden, mine)):
        filled = (finite[:, 1] <= FILL) & np.isfinite(finite[:, 1]) & (TIMES * np.abs(finite[:, 0]) <= -finite[:, 1])
        found |= (infinite[:, 1] == -np.inf) & np.isfinite(infinite[:, 0]) & filled
    return found


def unfilled_difference(
    target: npt.NDArray[np.generic], golden: npt.NDArray[np.generic], minimum: float, whole: TensorDifference
) -> TensorDifference:
    """``whole`` with the size of the difference, and the golden's, over the elements that are not filled alike.

    ``minimum``: the golden's, with which it is filled. Elements filled on one side alone, or otherwise, count.
    """
    if target.shape != golden.shape:
        return whole
    with np.errstate(all="ignore"):
        apart = np.abs(target.astype(np.float64) - golden.astype(np.float64))
    filled = (golden <= _PART * minimum) & (apart <= _ALIKE * -minimum)  # type: ignore[operator]
    return _without(filled, target, golden, whole)


def difference_but_for_fills(
    target: npt.NDArray[np.generic], golden: npt.NDArray[np.generic], whole: TensorDifference
) -> TensorDifference:
    """The same of two tensors of which one is filled with -inf, the other with a large number."""
    if target.shape != golden.shape:
        return whole
    # Below half the least finite number lies -inf alone.
    least = [_PART * max(float(array.min()), -np.finfo(array.dtype).max) for array in (target, golden)]  # type: ignore
    filled = (target <= least[0]) & (golden <= least[1])  # type: ignore[operator]
    return _without(filled, target, golden, whole)


def _without(
    filled: npt.NDArray[np.bool_],
    target: npt.NDArray[np.generic],
    golden: npt.NDArray[np.generic],
    whole: TensorDifference,
) -> TensorDifference:
    if filled.all() or not filled.any():
        return whole
    rest = tensor_difference(target[~filled], golden[~filled])
    return replace(whole, relative_l2=rest.relative_l2, error_rms=rest.error_rms, golden_rms=rest.golden_rms)


#: Numbers with so few significant bits (0, 1, 0.5, 6, -100) come from anywhere.
_ROUND_BITS = 5


def rounded_on_one_side(mine: Floats, golden: Floats) -> npt.NDArray[np.bool_]:
    """For rows of (Max, Min) of two float32 tensors: whether those of one side alone are numbers of a narrower float.

    One of the two may be equal on both sides (the 0 of a ReLU).
    """
    ours, theirs = _rounded_alone(mine, golden)
    return ours | theirs


def _rounded_alone(mine: Floats, golden: Floats) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """The same for each of the two sides."""
    narrow, equal = (_narrow(mine), _narrow(golden)), mine == golden
    found = []
    for values, marks in ((mine, narrow[0] & ~narrow[1]), (golden, narrow[1] & ~narrow[0])):
        rounded = (marks | equal).all(axis=1) & marks.any(axis=1)
        found.append(rounded & (values[:, 0] != values[:, 1]))
    return found[0], found[1]


def _narrow(values: Floats) -> npt.NDArray[np.bool_]:
    """Whether the values have no more bits than float16 or bfloat16 numbers, and more than round numbers have."""
    found: npt.NDArray[np.bool_] = fits_narrow(values) & ~is_round(values)
    return found


def fits_narrow(values: Floats) -> npt.NDArray[np.bool_]:
    """Return which of the values are finite and have no more bits than float16 or bfloat16 numbers."""
    with np.errstate(all="ignore"):
        half = values.astype(np.float16).astype(np.float64) == values
        brain = _has_bits(np.frexp(values)[0], 8)
    found: npt.NDArray[np.bool_] = (half | brain) & np.isfinite(values)
    return found


def is_round(values: Floats) -> npt.NDArray[np.bool_]:
    """Return which of the values have so few bits that they come from anywhere."""
    with np.errstate(all="ignore"):
        return _has_bits(np.frexp(values)[0], _ROUND_BITS)


def _has_bits(mantissas: Floats, bits: int) -> npt.NDArray[np.bool_]:
    scaled = np.ldexp(mantissas, bits)
    found: npt.NDArray[np.bool_] = scaled == np.rint(scaled)
    return found
