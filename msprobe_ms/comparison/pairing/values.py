"""Pair calls of one operation by the tensors that they give out, where their order pairs them otherwise.

Two implementations compute queries, keys and values in any order. Where the k-th calls of both sides give out tensors
that are far apart, and each of them has another counterpart that agrees, the values decide. Values that an error has
changed agree with none: then the order counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from msprobe_ms.arrays import sketch
from msprobe_ms.comparison.pairing.operations import Call
from msprobe_ms.comparison.statistics import element_count
from msprobe_ms.dump.model import Entry, Item

#: More calls of one operation in one scope are left in their order: each is asked about each other.
_MOST = 64


class _Measure(NamedTuple):
    """A relative difference of two tensors of one size; up to ``agree`` they agree, beyond ``differ`` they do not.

    NaN, which is neither, where it cannot be told. A step of training, or another precision, sets tensors apart by some
    percent; two tensors of random numbers are 1.4 apart, and their extremes by a tenth.
    """

    apart: Callable[[Item, Item], float]
    agree: float
    differ: float


def _by_sketch(mine: Item, other: Item) -> float:
    ours, theirs = sketch.decode(mine.sketch or ""), sketch.decode(other.sketch or "")
    if ours is None or theirs is None:
        return math.nan
    larger = max(sketch.norm(ours), sketch.norm(theirs))
    return sketch.distance(ours, theirs) / larger if larger else 0.0


def _by_statistics(mine: Item, other: Item) -> float:
    ours, theirs = (np.array([item.maximum, item.minimum, item.norm], np.float64) for item in (mine, other))
    sizes = np.maximum(np.abs(ours), np.abs(theirs))
    scales = np.array([sizes[:2].max(), sizes[:2].max(), sizes[2]])
    with np.errstate(all="ignore"):
        return float(np.max(np.where(ours == theirs, 0.0, np.abs(ours - theirs) / scales)))


_MEASURES = _Measure(_by_sketch, 0.2, 0.6), _Measure(_by_statistics, 0.05, 0.1)


def in_order_of_values(calls: Sequence[Call], counterparts: Sequence[Call]) -> list[Call]:
    """Return ``counterparts``, as many as ``calls``, so that the k-th is the k-th call's by order, or by values."""
    arranged = list(counterparts)
    if not 1 < len(calls) <= _MOST:
        return arranged
    ours, theirs = [_given(call.entry) for call in calls], [_given(call.entry) for call in counterparts]
    for measure in _MEASURES:
        found = _exchanged(ours, theirs, measure)
        before, before_of = list(arranged), list(theirs)
        for place, other in found.items():
            arranged[place], theirs[place] = before[other], before_of[other]
    return arranged


def _exchanged(ours: Sequence[Item | None], theirs: Sequence[Item | None], measure: _Measure) -> dict[int, int]:
    """Places whose tensors are far apart → the places of others that agree, among those alone."""
    astray = [
        place for place, both in enumerate(zip(ours, theirs, strict=True)) if _apart(*both, measure) > measure.differ
    ]
    alike = [
        (place, other)
        for place in astray
        for other in astray
        if _apart(ours[place], theirs[other], measure) <= measure.agree
    ]
    places, others = Counter(place for place, _ in alike), Counter(other for _, other in alike)
    found = {place: other for place, other in alike if places[place] == others[other] == 1}
    # Only calls that change places among themselves: each is left with a counterpart that agrees.
    while stray := found.keys() ^ set(found.values()):
        found = {place: other for place, other in found.items() if place not in stray and other not in stray}
    return found


def _apart(mine: Item | None, other: Item | None, measure: _Measure) -> float:
    if mine is None or other is None:
        return math.nan
    return measure.apart(mine, other) if element_count(mine) == element_count(other) else math.inf


def are_of_other_sizes(call: Call, counterpart: Call) -> bool:
    """Whether two calls take in and give out tensors of other numbers of elements."""
    both = call.entry, counterpart.entry
    taken, given = [_first(entry, "input") for entry in both], [_given(entry) for entry in both]
    return all(
        mine is not None and other is not None and element_count(mine) != element_count(other)
        for mine, other in (taken, given)
    )


def _given(entry: Entry) -> Item | None:
    return _first(entry, "output")


def _first(entry: Entry, state: str) -> Item | None:
    return next((item for item in entry.items if item.state == state and item.kind == "tensor"), None)
