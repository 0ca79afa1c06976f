"""Modules that one side recorded in more depth: an attention made of layers beside one that is a layer itself."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from msprobe_ms.comparison.pairing.align import longest_increasing
from msprobe_ms.comparison.pairing.automatic.containers import fits
from msprobe_ms.comparison.pairing.automatic.evidence import OTHER_DEPTH, Evidence
from msprobe_ms.comparison.pairing.automatic.layers import Found
from msprobe_ms.comparison.pairing.automatic.outline import Outline
from msprobe_ms.comparison.pairing.automatic.sequence import NEVER, align_in_order, possible

#: Pairs looked at in one stretch; where more is unknown nothing is certain.
_MOST = 10_000


def match_whole(
    evidence: Evidence, paired: dict[int, int], used: Iterable[int], used_there: Iterable[int]
) -> list[Found]:
    """Pairs, between those that are ``paired``, of modules with parameters none of which is used elsewhere.

    Two modules without children are left alone: as layers they have been looked at.
    """
    target, golden = evidence.target, evidence.golden
    back = {other: one for one, other in paired.items()}
    ours, theirs = _in_order(target, paired, used), _in_order(golden, back, used_there)
    places = {node: place for place, node in enumerate(theirs)}
    spine = longest_increasing(
        [(place, places[paired[node]]) for place, node in enumerate(ours) if paired.get(node, -1) in places]
    )
    found = []
    for (start, start_there), (stop, stop_there) in pairwise([(-1, -1), *spine, (len(ours), len(theirs))]):
        mine = [node for node in ours[start + 1 : stop] if node not in paired]
        other = [node for node in theirs[start_there + 1 : stop_there] if node not in back]
        if mine and other:
            found += [
                one for one in _between(evidence, mine, other) if fits(evidence, one.ours, one.theirs, paired, back)
            ]
    return found


def _in_order(side: Outline, paired: Iterable[int], used: Iterable[int]) -> list[int]:
    """Nodes that are paired, or above none that are used and have parameters, in the order in which they ended."""
    telling = {node for node in used if side.nodes[node].parameters or not side.has_parameters}
    above = {*used, *(node for layer in telling for node in side.ancestors(layer))}
    fixed = (node for node in paired if node in telling or side.nodes[node].children)
    chosen = {*fixed, *(node for node in range(len(side.nodes)) if node not in above)}
    return sorted((node for node in chosen if side.nodes[node].rank >= 0), key=lambda node: side.nodes[node].rank)


def _between(evidence: Evidence, ours: list[int], theirs: list[int]) -> list[Found]:
    """Pairs of one stretch, of which at least one has children."""
    if len(ours) * len(theirs) > _MOST:
        return []
    scores = evidence.pairs(np.repeat(ours, len(theirs)), np.tile(theirs, len(ours))).reshape(len(ours), len(theirs))
    target, golden = evidence.target.nodes, evidence.golden.nodes
    recorded = evidence.target.has_parameters and evidence.golden.has_parameters
    weighs, weighs_there = (
        [one in side.weighty if recorded else len(side.nodes[one].children) != 1 for one in numbers]
        for side, numbers in ((evidence.target, ours), (evidence.golden, theirs))
    )
    for row, one in enumerate(ours):
        for column, other in enumerate(theirs):
            deep, deep_there = bool(target[one].children), bool(golden[other].children)
            if not (deep or deep_there) or weighs[row] != weighs_there[column] or not weighs[row]:
                scores[row, column] = NEVER
                continue
            # What speaks against two layers is to be expected here: weights are in the children of one.
            if deep != deep_there:
                scores[row, column] -= OTHER_DEPTH
            if bool(target[one].parameters) != bool(golden[other].parameters):
                scores[row, column] -= evidence.unshared_parameters
    matches = align_in_order(possible(scores).__getitem__, len(ours), len(theirs), follow=0.0)
    return [Found(ours[match.ours], theirs[match.theirs], match.score, match.margin) for match in matches]
