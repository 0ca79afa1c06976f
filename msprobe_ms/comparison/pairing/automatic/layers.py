"""Pair layers: statistics that only two share fix points, between them the order of execution decides."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from msprobe_ms.comparison.pairing.align import longest_increasing
from msprobe_ms.comparison.pairing.automatic.outline import INPUT, OUTPUT, PARAMETER, Outline
from msprobe_ms.comparison.pairing.automatic.scores import ModuleScores, Stretch, shape_score
from msprobe_ms.comparison.pairing.automatic.sequence import NEVER, align_in_order, possible

#: Statistics at most so far apart (relative) are the same tensor's, whatever framework measured them.
_SAME = 1e-5
#: Times as far as from one another that two layers' statistics are from any third's, for these to be the same tensor's:
#: where more are near, as softmaxes of alike scores, chance may set two others nearer than the two of one layer.
_APART = 100.0
#: Layers before and after that are asked whether statistics agree around one.
_NEAR = 3
#: By how much more must speak for another pair than for that of two layers.
_BETTER = 1.0
#: Pairs of layers left over below one pair of modules, at most.
_MOST_LEFT = 1000
#: Pairs of layers in a stretch without a fixed point up to which all are looked at: some seconds.
_MOST_PAIRS = 50_000_000
#: Norms so close together are looked at one by one; more are no fixed points anyway.
_CROWD = 16


@dataclass(frozen=True, slots=True)
class Found:
    """A pair of nodes, what speaks for it, and how much worse all is without it."""

    ours: int
    theirs: int
    score: float
    margin: float


def match_layers(evidence: ModuleScores) -> list[Found]:
    """Pair the layers of both outlines, each at most once."""
    target, golden = evidence.target, evidence.golden
    places = {node: place for place, node in enumerate(golden.layers)}
    fixed: dict[int, int] = {}
    for which in (PARAMETER, OUTPUT):
        taken = set(fixed.values())
        ours = [node for node in target.layers if node not in fixed]
        theirs = [node for node in golden.layers if node not in taken]
        alike = _only_pairs(evidence, ours, theirs, which)
        fixed.update((a, b) for a, b in alike.items() if not _named_otherwise(evidence, a, b))
    in_order = [(place, places[fixed[node]]) for place, node in enumerate(target.layers) if node in fixed]
    spine = longest_increasing(in_order)
    kept = {target.layers[place]: golden.layers[other] for place, other in spine}
    crossing = {a: b for a, b in fixed.items() if a not in kept}
    certain = [*kept.items(), *crossing.items()]
    scores = evidence.pairs([ours for ours, _ in certain], [theirs for _, theirs in certain])
    found = [Found(*pair, score, score) for pair, score in zip(certain, scores.tolist(), strict=True)]
    gone = set(crossing.values())
    edges = [(-1, -1), *spine, (len(target.layers), len(golden.layers))]
    for (start, other_start), (stop, other_stop) in pairwise(edges):
        ours = [node for node in target.layers[start + 1 : stop] if node not in crossing]
        theirs = [node for node in golden.layers[other_start + 1 : other_stop] if node not in gone]
        found += _between(evidence, ours, theirs)
    found = [one for one in found if not _one_computes_nothing(evidence, one)]
    return _or_around(evidence, _in_place(evidence, found))


def _one_computes_nothing(evidence: ModuleScores, one: Found) -> bool:
    """Whether one passes on what it takes in and the other makes something of another size of it."""
    sides = (evidence.target, one.ours), (evidence.golden, one.theirs)
    changes = [_changes_size(side, node) for side, node in sides]
    return any(changes) and any(side.passes_on(node) for side, node in sides)


def _changes_size(side: Outline, node: int) -> bool:
    taken, given = side.nodes[node].input, side.nodes[node].output
    return taken is not None and given is not None and math.prod(taken) != math.prod(given)


def _in_place(evidence: ModuleScores, found: list[Found]) -> list[Found]:
    """Without margin what took in and gave out other statistics although layers before and after agree.

    A fault is passed on: what comes after it does not agree. Siblings that are paired say that the place is right.
    """
    found.sort(key=lambda one: evidence.target.nodes[one.ours].rank)
    pairs = [one.ours for one in found], [one.theirs for one in found]
    agree = np.stack([evidence.agree(*pairs, which) for which in (INPUT, OUTPUT, PARAMETER)])
    conflict = evidence.conflict(*pairs, INPUT) | evidence.conflict(*pairs, OUTPUT)
    families = Counter(_parents(evidence, one) for one in found)
    passing = agree[OUTPUT]
    return [
        replace(one, margin=0.0)
        if conflict[place]
        and not agree[:, place].any()
        and passing[max(place - _NEAR, 0) : place].any()
        and passing[place + 1 : place + 1 + _NEAR].any()
        and families[_parents(evidence, one)] < 2
        else one
        for place, one in enumerate(found)
    ]


def _or_around(evidence: ModuleScores, found: Sequence[Found]) -> list[Found]:
    """A layer's counterpart may be what encloses the other layer, and begins or ends with it.

    That is so of a module with one layer inside, and of one whose layers the other side has as code of its own. Where
    the two give out other things it may be any of its class.
    """
    conflict = evidence.conflict([one.ours for one in found], [one.theirs for one in found], OUTPUT)
    ways = [list(_ways(evidence, one, conflict=bool(other))) for one, other in zip(found, conflict, strict=True)]
    flat = [way for each in ways for way in each]
    scores = iter(evidence.pairs([ours for ours, _ in flat], [theirs for _, theirs in flat]).tolist())
    better = []
    for one, each in zip(found, ways, strict=True):
        score, way = max(((next(scores), way) for way in each), default=(-math.inf, (one.ours, one.theirs)))
        better.append(Found(*way, score, min(one.margin, score - one.score)) if score >= one.score + _BETTER else one)
    return better


def _ways(evidence: ModuleScores, one: Found, *, conflict: bool) -> Iterator[tuple[int, int]]:
    """What else the counterparts may be. ``conflict``: whether the two give out other things."""
    target, golden = evidence.target, evidence.golden
    yield from ((around, one.theirs) for around in _around(target, one.ours))
    yield from ((one.ours, around) for around in _around(golden, one.theirs))
    if conflict:
        yield from ((like, one.theirs) for like in _enclosing_of_class(target, golden, one.theirs))
        yield from ((one.ours, like) for like in _enclosing_of_class(golden, target, one.ours))


def _around(side: Outline, node: int) -> Iterator[int]:
    """Modules around a layer, no layers themselves, that enclose nothing else, or take in or give out what it does."""
    for around in side.ancestors(node):
        ends = (side.statistics[around] == side.statistics[node]).all(axis=1)
        if side.nodes[around].is_layer or not (_is_only_child(side, node) or ends[INPUT] or ends[OUTPUT]):
            return
        yield around
        node = around


def _enclosing_of_class(side: Outline, other: Outline, node: int) -> list[int]:
    """Modules of one side, no layers themselves, of the class of a layer of the other that gives out the same."""
    alike = [each for each in side.containers.get(other.nodes[node].class_name, ()) if not side.nodes[each].is_layer]
    return [each for each in alike if _alike(side.statistics[each, OUTPUT], other.statistics[node, OUTPUT])]


def _is_only_child(side: Outline, node: int) -> bool:
    return len(side.nodes[side.nodes[node].parent].children) == 1


def _parents(evidence: ModuleScores, one: Found) -> tuple[int, int]:
    """The nearest modules around the two that are no mere wrappers."""
    return family(evidence.target, one.ours), family(evidence.golden, one.theirs)


def family(side: Outline, node: int) -> int:
    """Return the nearest module around a node that is no mere wrapper; -1 is the network's own surroundings."""
    node = side.nodes[node].parent
    while node >= 0 and len(side.nodes[node].children) == 1:
        node = side.nodes[node].parent
    return node


def match_left(evidence: ModuleScores, layers: dict[int, int], inner: dict[int, int]) -> list[Found]:
    """Pair layers with parameters that are left over below a pair of modules, in whatever order they ran.

    Without parameters (a dropout here before and there after a projection) order is all that tells them apart.
    """
    ours = _left(evidence.target, layers, inner)
    theirs = _left(evidence.golden, {other: one for one, other in layers.items()}, dict.fromkeys(inner.values(), 0))
    found = []
    for above, left in ours.items():
        others = theirs.get(inner.get(above, -1), [])
        if others and len(left) * len(others) <= _MOST_LEFT:
            found += _unordered(evidence, left, others)
    return found


def _left(side: Outline, layers: dict[int, int], inner: dict[int, int]) -> dict[int, list[int]]:
    """Layers with parameters and no counterpart, by the nearest module above that has one; -1 for the network."""
    left: dict[int, list[int]] = {}
    for node in side.layers:
        if node not in layers and side.nodes[node].parameters:
            above = next((one for one in side.ancestors(node) if one in inner), -1)
            left.setdefault(above, []).append(node)
    return left


def _unordered(evidence: ModuleScores, ours: list[int], theirs: list[int]) -> list[Found]:
    """The best pairs first; the margin is to the best other pair of the two."""
    scores = evidence.pairs(np.repeat(ours, len(theirs)), np.tile(theirs, len(ours))).reshape(len(ours), len(theirs))
    found = []
    left = possible(scores)
    while left.size and left.max() > 0:
        row, column = (int(place) for place in np.unravel_index(left.argmax(), left.shape))
        score = float(left[row, column])
        left[row, column] = NEVER
        rival = max(float(left[row].max()), float(left[:, column].max()), 0.0)
        found.append(Found(ours[row], theirs[column], score, score - rival))
        left[row], left[:, column] = NEVER, NEVER
    return found


def _between(evidence: ModuleScores, ours: Sequence[int], theirs: Sequence[int]) -> list[Found]:
    """Pairs of one stretch; in a very long one, layers of the same name and class are fixed points as well."""
    if len(ours) * len(theirs) <= _MOST_PAIRS:
        return _in_order(evidence, ours, theirs)
    modules, others = evidence.target.nodes, evidence.golden.nodes
    places = {others[node].module: place for place, node in enumerate(theirs)}
    named = [(place, places[modules[node].module]) for place, node in enumerate(ours) if modules[node].module in places]
    spine = longest_increasing(named)
    mine, other = [ours[place] for place, _ in spine], [theirs[place] for _, place in spine]
    scores = evidence.pairs(mine, other).tolist()
    found = [Found(*pair) for pair in zip(mine, other, scores, scores, strict=True)]
    for (start, other_start), (stop, other_stop) in pairwise([(-1, -1), *spine, (len(ours), len(theirs))]):
        stretch, counterpart = ours[start + 1 : stop], theirs[other_start + 1 : other_stop]
        if len(stretch) * len(counterpart) <= _MOST_PAIRS:  # else they keep their names
            found += _in_order(evidence, stretch, counterpart)
    return found


def _in_order(evidence: ModuleScores, ours: Sequence[int], theirs: Sequence[int]) -> list[Found]:
    matches = align_in_order(Stretch(evidence, ours, theirs).row, len(ours), len(theirs))
    return [Found(ours[match.ours], theirs[match.theirs], match.score, match.margin) for match in matches]


def _only_pairs(evidence: ModuleScores, ours: Sequence[int], theirs: Sequence[int], which: int) -> dict[int, int]:
    """Layers whose statistics of one tensor no third layer shares."""
    target, golden = evidence.target, evidence.golden
    mine, other = _telling(target, ours, which), _telling(golden, theirs, which)
    statistics = np.concatenate([target.statistics[mine, which], golden.statistics[other, which]])
    sides = np.concatenate([np.zeros(len(mine), bool), np.ones(len(other), bool)])
    nodes = np.concatenate([mine, other])
    order = np.argsort(statistics[:, 0], kind="stable")
    statistics, sides, nodes = statistics[order], sides[order], nodes[order]
    norms = statistics[:, 0]
    breaks = np.flatnonzero(np.diff(norms) > _SAME * np.abs(norms[1:])) + 1
    pairs = {}
    for crowd in np.split(np.arange(len(norms)), breaks):
        if not 2 <= len(crowd) <= _CROWD:
            continue
        for a in crowd[~sides[crowd]]:
            alike = [int(b) for b in crowd if _alike(statistics[a], statistics[b])]
            if len(alike) == 2 and sides[alike].sum() == 1:
                b = next(place for place in alike if sides[place])
                near = _APART * _apart(statistics[a], statistics[b])
                if near > _SAME and _are_near(statistics, int(a), near) > len(alike):
                    continue
                if _could_be(evidence, int(nodes[a]), int(nodes[b]), which):
                    pairs[int(nodes[a])] = int(nodes[b])
    return pairs


def _telling(side: Outline, nodes: Sequence[int], which: int) -> NDArray[np.intp]:
    """Those whose statistics are known and not those of a constant."""
    chosen = np.array(nodes, np.intp)
    statistics = side.statistics[chosen, which]
    known = np.isfinite(statistics).all(axis=1) & (statistics[:, 1] != statistics[:, 2])
    return chosen[known]


def _alike(one: NDArray[np.float32], other: NDArray[np.float32]) -> bool:
    scale = max(abs(float(one[1])), abs(float(one[2])))
    return bool(np.abs(one[1:] - other[1:]).max() <= _SAME * scale)


def _apart(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """The largest relative difference of norms and extremes."""
    scales = np.array([one[0], *[np.abs(one[1:]).max()] * 2])
    return float((np.abs(one - other) / scales).max())


def _are_near(statistics: NDArray[np.float32], place: int, near: float) -> int:
    """How many of the statistics, in the order of their norms, are as near to those at ``place``, these included."""
    norm, scale = float(statistics[place, 0]), float(np.abs(statistics[place, 1:]).max())
    first, last = np.searchsorted(statistics[:, 0], [norm * (1 - near), norm * (1 + near)])
    gaps = np.abs(statistics[first:last, 1:] - statistics[place, 1:]).max(axis=1)
    return int((gaps <= near * scale).sum())


def _could_be(evidence: ModuleScores, ours: int, theirs: int, which: int) -> bool:
    """Nothing known of the two contradicts: kinds, shapes, and for an output what came in."""
    mine, other = evidence.target.nodes[ours], evidence.golden.nodes[theirs]
    if mine.kind and other.kind and mine.kind != other.kind:
        return False
    if which == PARAMETER:
        return mine.parameters is None or other.parameters is None or mine.largest_parameter == other.largest_parameter
    alike = bool(mine.children) == bool(other.children) and evidence.structural(ours)[theirs] > 0
    return alike and shape_score(mine.output, other.output) > 0 and not evidence.conflict([ours], [theirs], INPUT)[0]


def _named_otherwise(evidence: ModuleScores, ours: int, theirs: int) -> bool:
    """Whether a sibling of the golden layer has the target layer's name: its values may stand in the wrong place."""
    mine, other = evidence.target.nodes[ours], evidence.golden.nodes[theirs]
    last = mine.parts[-1:]
    if not last or last[0].isdigit() or last == other.parts[-1:] or other.parent < 0:
        return False
    siblings = (evidence.golden.nodes[sibling] for sibling in evidence.golden.nodes[other.parent].children)
    return any(sibling.parts[-1:] == last and sibling.kind == mine.kind for sibling in siblings)
