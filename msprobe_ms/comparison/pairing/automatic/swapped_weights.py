"""Find weights that were loaded crosswise: there names and places say which layer is which, not weights.

Statistics of weights are the strongest evidence there is, but the fault looked for may be that ``k`` holds what ``v``
should. A layer's *role* is its path with ``#`` for the numbers in it. Where the same role in other layers, the numbers
of the layers around, or what tells the names of two roles apart, say that weights went round in a circle, the layers
stay where they belong. What was computed may refute it: with the right weights the module around gives out the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import TypeVar

import numpy as np

from msprobe_ms.comparison.pairing.automatic.layer_names import likeness
from msprobe_ms.comparison.pairing.automatic.layers import Found, family
from msprobe_ms.comparison.pairing.automatic.outline import INPUT, OUTPUT, PARAMETER, Node, Outline
from msprobe_ms.comparison.pairing.automatic.scores import ModuleScores, Numbers

#: A layer's path with "#" for numbers, and these numbers.
Role = tuple[str, ...]
Place = tuple[Role, tuple[str, ...]]
#: Target layers, each of which should have the weights that the next one has.
Circle = tuple[int, ...]

Key = TypeVar("Key", bound=Hashable)

#: Siblings of one sort whose names are laid beside each other, at most.
_MOST = 64
#: What comes out of a module agrees up to so many times of what its layers' outputs are apart, and of this at least.
_TIMES, _ROUNDING = 30.0, 1e-6
#: Outputs further apart (relative) are not of the same weights and inputs, in whatever dtype.
_APART = 1e-3
#: The margin of pairs that their weights speak against.
_DOUBTED = 1.25


def find_exchanged(evidence: ModuleScores, layers: Sequence[Found]) -> list[Circle]:
    """Find circles of target layers whose weights alone say that each is the golden counterpart of another."""
    return _Search(evidence, layers).circles()


def put_right(side: Outline, circles: Iterable[Circle]) -> Outline:
    """Return the target as if its weights were where they belong; what they made of their inputs is left out."""
    statistics, nodes = side.statistics.copy(), list(side.nodes)
    for circle in circles:
        for node, holder in zip(circle, (*circle[1:], circle[0]), strict=True):
            statistics[node, PARAMETER], statistics[node, OUTPUT] = side.statistics[holder, PARAMETER], math.nan
            checksums = list(side.nodes[node].checksums)
            checksums[PARAMETER], checksums[OUTPUT] = side.nodes[holder].checksums[PARAMETER], None
            nodes[node] = replace(side.nodes[node], checksums=checksums)
    return replace(side, nodes=nodes, statistics=statistics)


def doubted(layers: Iterable[Found], circles: Iterable[Circle]) -> list[Found]:
    """The pairs of layers, those in circles less sure."""
    gone = {node for circle in circles for node in circle}
    return [replace(one, margin=min(one.margin, _DOUBTED)) if one.ours in gone else one for one in layers]


class _Search:
    """``pairs``: the layers that weights pair, with their golden counterparts; ``back``: the other way."""

    def __init__(self, evidence: ModuleScores, layers: Sequence[Found]) -> None:
        self.evidence = evidence
        agree = evidence.agree([one.ours for one in layers], [one.theirs for one in layers], PARAMETER)
        self.pairs = {one.ours: one.theirs for one, alike in zip(layers, agree, strict=True) if alike}
        self.back = {theirs: ours for ours, theirs in self.pairs.items()}
        self.ours = {node: _place(evidence.target.nodes[node]) for node in self.pairs}
        self.theirs = {node: _place(evidence.golden.nodes[node]) for node in self.back}
        self.at = {place: node for node, place in self.theirs.items()}

    def circles(self) -> list[Circle]:
        roles = self._by_names(_most(self._votes(0)))
        numbers = self._by_inputs(roles, _most(self._votes(1)))
        wanted = self._wanted(roles, numbers)
        return [circle for circle in _circles(wanted, self.back) if not self._refuted(circle, wanted)]

    def _votes(self, part: int) -> Iterable[tuple[Hashable, Hashable]]:
        return ((self.ours[ours][part], self.theirs[theirs][part]) for ours, theirs in self.pairs.items())

    def _wanted(self, roles: Mapping, numbers: Mapping) -> dict[int, int]:
        """Target layer → the golden layer in the place that roles and numbers lead to, where that is another."""
        wanted = {}
        for ours, theirs in self.pairs.items():
            role, number = self.ours[ours]
            other = self.at.get((roles[role], numbers[number]), theirs)
            if other != theirs and _sort(self.evidence.golden.nodes[other]) == _sort(self.evidence.target.nodes[ours]):
                wanted[ours] = other
        return wanted

    def _by_names(self, found: Mapping[Role, Role]) -> dict[Role, Role]:
        """Siblings' golden roles, changed where each bears the other's name and no computation speaks against it."""
        target, golden = self.evidence.target, self.evidence.golden
        families: dict[Hashable, dict[Role, None]] = {}
        for ours, theirs in self.pairs.items():
            around = family(target, ours), family(golden, theirs), _sort(target.nodes[ours])
            families.setdefault(around, {})[self.ours[ours][0]] = None
        right = dict(found)
        for family_roles in dict.fromkeys(map(tuple, families.values())):  # layers are alike
            roles = [role for role in family_roles if right[role] == found[role]]
            if not 2 <= len(roles) <= _MOST:
                continue
            named = {role: other for role in roles if (other := _namesake(role, roles, found)) is not None}
            for circle in _circles(named, {found[role]: role for role in roles}):
                swapped = {role: named[role] for role in circle}
                if not self._computed(swapped):
                    right |= swapped
        return right

    def _computed(self, swapped: Mapping[Role, Role]) -> bool:
        """Whether in one of the layers what was computed shows that the weights are where they belong."""
        whole: dict[tuple[str, ...], list[int]] = {}
        for ours in self.pairs:
            role, number = self.ours[ours]
            if role in swapped:
                whole.setdefault(number, []).append(ours)
        return any(self._agrees_around(circle) for circle in whole.values() if len(circle) == len(swapped))

    def _by_inputs(self, roles: Mapping, found: Mapping) -> dict[Hashable, Hashable]:
        """Golden numbers of layers, changed where whole layers went round and their inputs tell which they are."""
        swapped = {number: number for number, other in found.items() if number != other and number in found.values()}
        right = dict(found)
        for circle in _circles(swapped, {other: number for number, other in found.items()}):
            if any(self._takes(ours, self.at.get((roles[role], number)))
                   for ours, (role, number) in self.ours.items() if number in circle):  # fmt: skip
                right.update((number, number) for number in circle)
        return right

    def _takes(self, ours: int, other: int | None) -> bool:
        """Whether a layer takes in what this golden layer does, and not what the counterpart of its weights does."""
        if other is None:
            return False
        agree = self.evidence.agree([ours], [other], INPUT)[0]
        return bool(agree and self.evidence.conflict([ours], [self.pairs[ours]], INPUT)[0])

    def _refuted(self, circle: Sequence[int], wanted: Mapping[int, int]) -> bool:
        """Whether inputs or what is computed from the layers show that the weights are where they belong."""
        by_weights = [self.pairs[ours] for ours in circle]
        by_place = [wanted[ours] for ours in circle]
        taken = self.evidence.agree(circle, by_weights, INPUT) & self.evidence.conflict(circle, by_place, INPUT)
        return bool(taken.any()) or self._agrees_around(circle)

    def _agrees_around(self, circle: Sequence[int]) -> bool:
        """Whether the module around these layers gives out what its counterpart does, as nearly as they do."""
        evidence, counterparts = self.evidence, [self.pairs[ours] for ours in circle]
        above, above_there = _around(evidence.target, circle), _around(evidence.golden, counterparts)
        if above is None or above_there is None:
            return False
        apart = float(np.nanmax(evidence.distance(circle, counterparts, OUTPUT), initial=0.0))
        around = float(evidence.distance([above], [above_there], OUTPUT)[0])
        return apart <= _APART and around <= _TIMES * max(_ROUNDING, apart)


def _place(node: Node) -> Place:
    parts = node.parts
    return tuple("#" if part.isdigit() else part for part in parts), tuple(part for part in parts if part.isdigit())


def _sort(node: Node) -> Hashable:
    """Layers of one sort may hold each other's weights."""
    return node.kind, node.parameters


def _around(side: Outline, nodes: Numbers) -> int | None:
    """The innermost module that ran and encloses all of them."""
    common = [set(side.ancestors(int(node))) for node in nodes]
    return next((up for up in side.ancestors(int(nodes[0])) if side.nodes[up].rank >= 0
                 and all(up in above for above in common)), None)  # fmt: skip


def _most(votes: Iterable[tuple[Hashable, Hashable]]) -> dict:
    """What most say, of each; the first where as many say otherwise."""
    counts: dict[Hashable, Counter[Hashable]] = {}
    for one, other in votes:
        counts.setdefault(one, Counter())[other] += 1
    return {one: others.most_common(1)[0][0] for one, others in counts.items()}


def _namesake(role: Role, roles: Sequence[Role], found: Mapping[Role, Role]) -> Role | None:
    """The golden role of a sibling whose name is more like this one's than that of its own; None where none is."""
    best, better = 0.0, None
    for sibling in roles:
        if sibling != role and found[sibling] != found[role]:
            name, _ = _telling(role, sibling)
            own, other = _telling(found[role], found[sibling])
            alike = likeness(name, other) - likeness(name, own)
            if alike > best:
                best, better = alike, found[sibling]
    return better


def _telling(role: Role, other: Role) -> tuple[str, str]:
    """What tells two names apart: ``k`` and ``v`` of ``attn.wk`` and ``attn.wv``."""
    names = [".".join(role), ".".join(other)]
    start = _common(*names)
    names = [name[start:] for name in names]
    end = _common(*(name[::-1] for name in names))
    return names[0][: len(names[0]) - end], names[1][: len(names[1]) - end]


def _common(name: str, other: str) -> int:
    """How many letters two names begin with alike."""
    return sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(name, other, strict=False)))


def _circles(wanted: Mapping[Key, Hashable], back: Mapping) -> list[tuple[Key, ...]]:
    """Closed ways from one to the one that has what it wants, the shortest description of a permutation."""
    circles, seen = [], set()
    for start in wanted:
        way: dict[Key, None] = {}
        node: Key | None = start
        while node is not None and node in wanted and node not in seen:
            seen.add(node)
            way[node] = None
            node = back.get(wanted[node])
        if node is not None and node in way:
            every = list(way)
            circles.append(tuple(every[every.index(node) :]))
    return circles
