"""Match modules that enclose others by the layers below them, and those that one side recorded in more depth.

A wrapper has the layers of what it wraps, but not its children, so the inner of the two is the counterpart of an
unwrapped module. An attention made of layers may stand beside one that is a layer itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from msprobe_ms.comparison.pairing.align import longest_increasing
from msprobe_ms.comparison.pairing.automatic.fused import Fused
from msprobe_ms.comparison.pairing.automatic.layers import Found
from msprobe_ms.comparison.pairing.automatic.outline import OUTPUT, PARAMETER, Outline
from msprobe_ms.comparison.pairing.automatic.scores import OTHER_DEPTH, ModuleScores
from msprobe_ms.comparison.pairing.automatic.sequence import NEVER, align_in_order, possible

#: Share of layers two modules must have in common to come into question.
_LEAST = 0.5
#: Beside these, what is compared of the modules themselves counts as for layers.
_COMMON_WEIGHT, _CHILDREN_WEIGHT = 4.0, 3.0
#: What speaks for two modules that can be no others: the models that were given to be compared.
CERTAIN = 10.0
#: Pairs looked at in one stretch; where more is unknown nothing is certain.
_MOST = 10_000


def match_inner(evidence: ModuleScores, layers: dict[int, int], fused: Iterable[Fused]) -> list[Found]:
    """Pair modules that enclose others, from the pairs of ``layers`` and the groups that are the same together."""
    common = _Common(evidence, layers, [*(Fused((one,), (other,)) for one, other in layers.items()), *fused])
    roots = _roots(evidence)
    layers = layers | {one.ours: one.theirs for one in roots}
    paired, paired_back = dict(layers), {other: one for one, other in layers.items()}
    asked: list[tuple[int, int, float]] = []
    for ours, theirs in common.shared:
        if ours in paired or theirs in paired_back:
            continue
        if evidence.target.nodes[ours].children and evidence.golden.nodes[theirs].children:
            share = common.share(ours, theirs)
            if share >= _LEAST:
                extra = _COMMON_WEIGHT * share + _CHILDREN_WEIGHT * common.children(ours, theirs)
                extra += common.parents(ours, theirs)
                extra += 1.0 if common.is_loose(ours) == common.is_loose_there(theirs) else 0.0
                asked.append((ours, theirs, extra))
    own = evidence.pairs([ours for ours, _, _ in asked], [theirs for _, theirs, _ in asked]).tolist()
    scored = [(score + extra, ours, theirs) for score, (ours, theirs, extra) in zip(own, asked, strict=True)]
    scored.sort(key=lambda one: (-one[0], one[1], one[2]))
    chosen: list[tuple[float, int, int]] = []
    for score, ours, theirs in scored:
        if ours in paired or theirs in paired_back:
            continue
        if fits(evidence, ours, theirs, paired, paired_back):
            paired[ours], paired_back[theirs] = theirs, ours
            chosen.append((score, ours, theirs))
    # The larger have the last word on the smaller, whichever came first.
    chosen = [one for one in chosen if fits(evidence, one[1], one[2], paired, paired_back)]
    chosen = [one for one in chosen if not _gives_what_another_gives(common, one[1], one[2], paired, paired_back)]
    rivals: dict[tuple[str, int], float] = {}
    for score, ours, theirs in scored:
        if theirs not in paired_back:
            rivals["ours", ours] = max(score, rivals.get(("ours", ours), 0.0))
        if ours not in paired:
            rivals["theirs", theirs] = max(score, rivals.get(("theirs", theirs), 0.0))
    return roots + [
        Found(ours, theirs, score, score - max(rivals.get(("ours", ours), 0.0), rivals.get(("theirs", theirs), 0.0)))
        for score, ours, theirs in chosen
    ]


def _gives_what_another_gives(
    common: _Common, ours: int, theirs: int, paired: dict[int, int], back: dict[int, int]
) -> bool:
    """Whether two give out different things, and one of them what a module around the other gives out, or its equal.

    A block adds what comes in to what its layers make: it is no counterpart of these layers alone. That other has to
    agree with its own counterpart, so that no block is left out that forgets to add.
    """
    evidence = common.evidence
    if not evidence.conflict([ours], [theirs], OUTPUT)[0]:
        return False
    share = common.share(ours, theirs)
    above, above_there = set(evidence.target.ancestors(ours)), set(evidence.golden.ancestors(theirs))
    rivals = [
        *((ours, other, back.get(other), other, other in above_there) for other in common.partners[ours]),
        *((one, theirs, one, paired.get(one), one in above) for one in common.partners_back[theirs]),
    ]
    return any(
        mine is not None
        and its is not None
        and common.share(one, other) >= share + (0 if around else 1e-6)
        and evidence.agree([one, mine], [other, its], OUTPUT).all()
        for one, other, mine, its, around in rivals
    )


def _roots(evidence: ModuleScores) -> list[Found]:
    """The pair of the models themselves, whatever their classes are called."""
    sides = ([number for number, node in enumerate(side.nodes) if not node.path and node.children]
             for side in (evidence.target, evidence.golden))  # fmt: skip
    return [Found(ours, theirs, CERTAIN, CERTAIN) for ours, theirs in zip(*sides, strict=False)]


def enclosing(evidence: ModuleScores, layers: list[Found]) -> list[Found]:
    """The layers without those that enclose others with parameters of which most have their counterparts elsewhere.

    A block that owns a scale is no counterpart of the layer which is that scale alone; a norm that holds its activation
    is one of a norm beside which the activation stands.
    """
    target, golden = evidence.target, evidence.golden
    pairs, back = {one.ours: one.theirs for one in layers}, {one.theirs: one.ours for one in layers}
    elsewhere: Counter[int] = Counter()
    for ours, theirs in pairs.items():
        if not (target.nodes[ours].parameters and golden.nodes[theirs].parameters):
            continue
        above, above_there = set(target.ancestors(ours)), set(golden.ancestors(theirs))
        for one in {*(above & pairs.keys()), *(back[other] for other in above_there & back.keys())}:
            elsewhere[one] += -1 if one in above and pairs[one] in above_there else 1
    return [one for one in layers if elsewhere[one.ours] <= 0]


def inside(evidence: ModuleScores, layers: list[Found], inner: dict[int, int]) -> list[Found]:
    """The layers without those that only the order of execution brought into modules that are not each other's."""
    back = {other: one for one, other in inner.items()}
    pairs = [one.ours for one in layers], [one.theirs for one in layers]
    proven = evidence.agree(*pairs, PARAMETER) | evidence.agree(*pairs, OUTPUT)
    return [one for place, one in enumerate(layers) if proven[place] or not _apart(evidence, one, inner, back)]


def _apart(evidence: ModuleScores, one: Found, inner: dict[int, int], back: dict[int, int]) -> bool:
    """Whether each stands in a module whose counterpart lacks the other; to be moved out of one is not enough."""
    above, above_there = list(evidence.target.ancestors(one.ours)), list(evidence.golden.ancestors(one.theirs))
    here = any(inner[node] not in above_there for node in above if node in inner)
    return here and any(back[node] not in above for node in above_there if node in back)


def fits(evidence: ModuleScores, ours: int, theirs: int, paired: dict[int, int], back: dict[int, int]) -> bool:
    """Whether the pairs above the two enclose both of them."""
    above, above_there = set(evidence.target.ancestors(ours)), set(evidence.golden.ancestors(theirs))
    return all(paired[one] in above_there for one in above if one in paired) and all(
        back[one] in above for one in above_there if one in back
    )


class _Common:
    """What two nodes have in common: units, each a pair of layers or a fused group, that are below (or are) both."""

    def __init__(self, evidence: ModuleScores, layers: dict[int, int], units: Iterable[Fused]) -> None:
        self.evidence = evidence
        self.layers, self.layers_back = layers, {other: one for one, other in layers.items()}
        self.shared: Counter[tuple[int, int]] = Counter()
        self.ours: Counter[int] = Counter()
        self.theirs: Counter[int] = Counter()
        for unit in units:
            mine = {node for layer in unit.ours for node in (layer, *evidence.target.ancestors(layer))}
            other = {node for layer in unit.theirs for node in (layer, *evidence.golden.ancestors(layer))}
            self.ours.update(mine)
            self.theirs.update(other)
            self.shared.update((a, b) for a in mine for b in other)
        self.partners: dict[int, list[int]] = {}
        self.partners_back: dict[int, list[int]] = {}
        for one, two in self.shared:
            self.partners.setdefault(one, []).append(two)
            self.partners_back.setdefault(two, []).append(one)

    def share(self, ours: int, theirs: int) -> float:
        """Units in common over all units of the two, 0…1."""
        both = self.shared.get((ours, theirs), 0)
        return both / (self.ours[ours] + self.theirs[theirs] - both) if both else 0.0

    def children(self, ours: int, theirs: int) -> float:
        """How well the children of one are the children of the other, 0…1."""
        target, golden = self.evidence.target.nodes, self.evidence.golden.nodes
        mine = [child for child in target[ours].children if self.ours[child]]
        others = [child for child in golden[theirs].children if self.theirs[child]]
        if not mine or not others:
            return 0.0
        there = (
            max((self._alike(one, two) for two in self.partners[one] if golden[two].parent == theirs), default=0.0)
            for one in mine
        )
        here = (
            max((self._alike(one, two) for one in self.partners_back[two] if target[one].parent == ours), default=0.0)
            for two in others
        )
        return (sum(there) / len(mine) + sum(here) / len(others)) / 2

    def is_loose(self, ours: int) -> bool:
        """Whether children with parameters have nothing in common with anything."""
        nodes = self.evidence.target.nodes
        return not all(self.ours[child] for child in nodes[ours].children if nodes[child].parameters)

    def is_loose_there(self, theirs: int) -> bool:
        nodes = self.evidence.golden.nodes
        return not all(self.theirs[child] for child in nodes[theirs].children if nodes[child].parameters)

    def parents(self, ours: int, theirs: int) -> float:
        """How well the parents have the same in common, 0…1; a wrapper has the parent of what it wraps."""
        if min(len(self.evidence.target.nodes[ours].children), len(self.evidence.golden.nodes[theirs].children)) < 2:
            return 0.0
        above, above_there = self.evidence.target.nodes[ours].parent, self.evidence.golden.nodes[theirs].parent
        if above < 0 or above_there < 0:
            return 1.0 if above == above_there else 0.0
        return self.share(above, above_there)

    def _alike(self, ours: int, theirs: int) -> float:
        """As ``share``; a layer that is paired with another one is hardly the counterpart of what encloses that."""
        elsewhere = self.layers.get(ours, theirs) != theirs or self.layers_back.get(theirs, ours) != ours
        return self.share(ours, theirs) * (0.5 if elsewhere else 1.0)


def match_whole(
    evidence: ModuleScores, paired: dict[int, int], used: Iterable[int], used_there: Iterable[int]
) -> list[Found]:
    """Pair modules with parameters, between those that are ``paired``, of which none is used elsewhere.

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


def _between(evidence: ModuleScores, ours: list[int], theirs: list[int]) -> list[Found]:
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
