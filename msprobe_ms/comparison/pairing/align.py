"""Align two sequences of names that may differ in how often a name occurs: fuzzy matching in n log n.

Names that occur equally often pair k-th with k-th. Those pairs, as far as both sides run them in the same order, are
fixed points; names that occur more often on one side pair within the stretch between two fixed points, so that a
surplus call stays where it happened and does not shift the calls after it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence


def align(target: Sequence[Hashable], golden: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return pairs of positions (target, golden); each position at most once.

    >>> align(["relu", "fc", "relu"], ["relu", "relu", "fc", "relu"])
    [(1, 2), (0, 0), (2, 3)]
    """
    ours, theirs = _positions(target), _positions(golden)
    pairs: list[tuple[int, int]] = []
    uneven: list[Hashable] = []
    for name, places in ours.items():
        others = theirs.get(name, [])
        if len(places) == len(others):
            pairs.extend(zip(places, others, strict=True))
        elif others:
            uneven.append(name)
    fixed = longest_increasing(sorted(pairs))
    for name in uneven:
        pairs += between(ours[name], theirs[name], fixed)
    return pairs


def align_by_marks(
    target: Sequence[tuple[Hashable, Hashable]], golden: Sequence[tuple[Hashable, Hashable]]
) -> list[tuple[int, int]]:
    """Align calls given as (name, mark); a mark that both sides have equally often identifies a call.

    [] where no mark tells anything. None is no mark.

    >>> align_by_marks([("relu", 3.1), ("relu", 4.2), ("relu", 5)], [("relu", 4.2), ("relu", 6)])
    [(1, 0), (2, 1)]
    """
    fixed = fixed_by_marks(target, golden)
    if not fixed:
        return []
    left, others = _without(target, {place for place, _ in fixed}), _without(golden, {place for _, place in fixed})
    return fixed + [pair for name, places in left.items() for pair in between(places, others.get(name, ()), fixed)]


def _without(calls: Sequence[tuple[Hashable, Hashable]], known: set[int]) -> dict[Hashable, list[int]]:
    """Places of each name but the known ones."""
    left: dict[Hashable, list[int]] = {}
    for place, (name, _) in enumerate(calls):
        if place not in known:
            left.setdefault(name, []).append(place)
    return left


def fixed_by_marks(
    target: Sequence[tuple[Hashable, Hashable]], golden: Sequence[tuple[Hashable, Hashable]]
) -> list[tuple[int, int]]:
    """Pair calls whose (name, mark) both sides have equally often, as far as both run them in one order."""
    ours, theirs = _positions(target), _positions(golden)
    alike = [
        pair
        for call, places in ours.items()
        if call[1] is not None and len(places) == len(theirs.get(call, ()))  # type: ignore[index]
        for pair in zip(places, theirs[call], strict=True)
    ]
    return longest_increasing(sorted(alike))


def between(
    ours: Sequence[int], theirs: Sequence[int], fixed: Sequence[tuple[int, int]], *, even: bool = False
) -> list[tuple[int, int]]:
    """Pair positions in the stretches between ``fixed`` pairs, first with first; ``even``: only if equally many."""
    ours_fixed, theirs_fixed = [pair[0] for pair in fixed], [pair[1] for pair in fixed]
    stretches: dict[int, list[int]] = {}
    for place in theirs:
        stretches.setdefault(bisect_left(theirs_fixed, place), []).append(place)
    groups: dict[int, list[int]] = {}
    for place in ours:
        groups.setdefault(bisect_left(ours_fixed, place), []).append(place)
    return [
        pair
        for stretch, places in groups.items()
        if not even or len(places) == len(stretches.get(stretch, ()))
        for pair in zip(places, stretches.get(stretch, ()), strict=False)
    ]


def _positions(names: Sequence[Hashable]) -> dict[Hashable, list[int]]:
    places: dict[Hashable, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    return places


def longest_increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest run of pairs (sorted by the first) whose second places grow too: patience sorting."""
    tops: list[int] = []
    top_pairs: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        pile = bisect_left(tops, place)
        before.append(top_pairs[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(place)
            top_pairs.append(number)
        else:
            tops[pile], top_pairs[pile] = place, number
    run = []
    number = top_pairs[-1] if top_pairs else -1
    while number >= 0:
        run.append(pairs[number])
        number = before[number]
    return run[::-1]
