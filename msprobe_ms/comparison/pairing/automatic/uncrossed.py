"""Siblings that one side calls in another order: queries before keys here, keys before queries there.

Layers that no figure fixes are paired in the order of execution, which then pairs each with the other's counterpart.
Names and kinds must say so: figures alone may be near by chance, or speak of weights that were loaded crosswise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

from msprobe_ms.comparison.pairing.automatic.layers import Found, family
from msprobe_ms.comparison.pairing.automatic.scores import ModuleScores

#: By how much more must speak for two pairs that cross than for two in order.
_BETTER = 1.0
#: Siblings that are looked at, two by two.
_MOST = 16


def uncrossed(evidence: ModuleScores, found: Sequence[Found]) -> list[Found]:
    """Return ``found`` with counterparts exchanged between siblings where more speaks for that than for their order."""
    pairs = list(found)
    families: dict[tuple[int, int], list[int]] = defaultdict(list)
    for place, one in enumerate(pairs):
        families[family(evidence.target, one.ours), family(evidence.golden, one.theirs)].append(place)
    for places in families.values():
        for first, second in combinations(places, 2) if len(places) <= _MOST else ():
            one, other = pairs[first], pairs[second]
            if not _are_named_crosswise(evidence, one, other):
                continue
            changed = evidence.pairs([one.ours, other.ours], [other.theirs, one.theirs]).tolist()
            margin = sum(changed) - one.score - other.score
            if margin > _BETTER:
                pairs[first] = Found(one.ours, other.theirs, changed[0], margin)
                pairs[second] = Found(other.ours, one.theirs, changed[1], margin)
    return pairs


def _are_named_crosswise(evidence: ModuleScores, one: Found, other: Found) -> bool:
    """Whether all but statistics speaks rather for the other's counterpart, of both together."""
    mine, theirs = evidence.structural(one.ours), evidence.structural(other.ours)
    return bool(mine[other.theirs] + theirs[one.theirs] > mine[one.theirs] + theirs[other.theirs])
