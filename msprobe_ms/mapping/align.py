"""Align two sequences of names that may differ in how often a name occurs: fuzzy matching in n log n.

Names that occur equally often pair k-th with k-th. Those pairs, as far as both sides run them in the same order, are
fixed points; names that occur more often on one side pair within the stretch between two fixed points, so that a
surplus call stays where it happened and does not shift the calls after it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence


def align(target: Sequence[Hashable], golden: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Pairs of positions (target, golden); each position at most once.

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
    ours_fixed, theirs_fixed = [pair[0] for pair in fixed], [pair[1] for pair in fixed]
    for name in uneven:
        stretches: dict[int, list[int]] = {}
        for place in theirs[name]:
            stretches.setdefault(bisect_left(theirs_fixed, place), []).append(place)
        used: dict[int, int] = {}
        for place in ours[name]:
            stretch = bisect_left(ours_fixed, place)
            taken = used.get(stretch, 0)
            if taken < len(stretches.get(stretch, ())):
                pairs.append((place, stretches[stretch][taken]))
                used[stretch] = taken + 1
    return pairs


def _positions(names: Sequence[Hashable]) -> dict[Hashable, list[int]]:
    places: dict[Hashable, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    return places


def longest_increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest run of pairs (sorted by the first) whose second places grow too: patience sorting."""
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
