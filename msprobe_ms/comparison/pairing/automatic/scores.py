"""Score how likely two modules are the same: kinds, shapes, names and statistics, weighed and added.

The weights are in units of "one shape agrees"; all scores are multiples of 1/16, so that sums of them are exact in
float32 and two equally good alignments have equal scores.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from msprobe_ms.comparison.pairing.automatic.layer_names import kind_of, likeness
from msprobe_ms.comparison.pairing.automatic.outline import INPUT, OUTPUT, PARAMETER, Node, Outline, Shape
from msprobe_ms.comparison.pairing.automatic.sequence import Scores, possible

#: What agreeing statistics count, of input, output and parameters: as much as they tell modules apart.
_STATISTIC_WEIGHTS = {INPUT: 2.0, OUTPUT: 3.0, PARAMETER: 5.0}
#: Relative differences up to which statistics agree, and how much of the weight each adds: rounding of one dtype,
#: accumulated rounding, a narrower dtype.
_AGREEMENT = ((1e-5, 0.4), (1e-3, 0.35), (2e-2, 0.25))
#: Statistics of constants (a new LayerNorm's ones) agree with every other one's.
_CONSTANT = 0.1

#: From this relative difference on, statistics are not those of one tensor.
_FAR = 0.1

#: The name of all elements of lists.
_NUMBER = "#"
#: Values of a property told apart; the rarer ones say nothing, else 20,000 different names would take hours.
_VALUES = 600

#: One has children and the other none; one has parameters and the other none, where both dumps record them.
OTHER_DEPTH, UNSHARED_PARAMETERS = -1.5, -2.0
#: Layers of different kinds; only where all statistics agree all the same (a convolution that is a matrix product).
_OTHER_KIND = -8.0


#: Numbers of nodes.
Numbers = Sequence[int] | NDArray[np.intp]


class ModuleScores:
    """Scores of every pair of a node of the target and one of the golden."""

    def __init__(self, target: Outline, golden: Outline) -> None:
        self.target, self.golden = target, golden
        recorded = target.has_parameters and golden.has_parameters
        #: What it counts that one of two has parameters and the other none.
        self.unshared_parameters = UNSHARED_PARAMETERS if recorded else 0.0
        self._tables = [
            _Table(target, golden, _class_key, class_score),
            _Table(target, golden, lambda node: node.output, lambda a, b: 2 * shape_score(a, b)),
            _Table(target, golden, lambda node: node.input, shape_score),
            _Table(target, golden, lambda node: node.parameters, parameter_score if recorded else _shared_parameters),
            _Table(
                target, golden, lambda node: _last_name(node).strip("0123456789_#"), lambda a, b: 0.5 * likeness(a, b)
            ),
            _Table(target, golden, _last_name, lambda a, b: 0.25 if a and a == b else 0.0),
            _Table(target, golden, lambda node: min(node.calls, 16), lambda a, b: 0.25 if a == b else 0.0),
        ]
        self._structure: dict[tuple[int, ...], Scores] = {}
        self.checksums = _interned(target, golden)
        statistics = target.statistics
        share = np.where(statistics[:, :, 1] == statistics[:, :, 2], _CONSTANT, 1.0)
        #: What agreement of each statistic of a target node adds.
        self._weights = (np.array([_STATISTIC_WEIGHTS[which] for which in range(3)]) * share).astype(np.float32)

    def structure(self, number: int) -> tuple[int, ...]:
        """Equal for target nodes that all but statistics say the same of."""
        return tuple(table.ours[number] for table in self._tables)

    def structural(self, number: int) -> Scores:
        """Scores of one target node with all golden nodes, by all but statistics."""
        key = self.structure(number)
        if key not in self._structure:
            total = sum((table.scores[row][table.theirs] for table, row in zip(self._tables, key, strict=True)))
            self._structure[key] = np.round(np.asarray(total, np.float32) * 16) / 16
        return self._structure[key]

    def pairs(self, ours: Numbers, theirs: Numbers) -> Scores:
        """Scores of pairs of nodes."""
        mine, other = np.array(ours, np.intp), np.array(theirs, np.intp)
        total = sum(table.scores[np.array(table.ours, np.intp)[mine], table.theirs[other]] for table in self._tables)
        scores = np.round(np.asarray(total, np.float32) * 16) / 16
        for which in _STATISTIC_WEIGHTS:
            scores += self.statistic_scores(mine, other, which)
        return np.asarray(scores, np.float32)

    def statistic_scores(self, ours: NDArray[np.intp], theirs: NDArray[np.intp], which: int) -> Scores:
        """What agreeing statistics of one tensor add, of pairs or of one node with several."""
        return np.round(self._agreement(ours, theirs, which) * self._weights[ours, which] * 16) / 16

    def _agreement(self, ours: NDArray[np.intp], theirs: NDArray[np.intp], which: int) -> Scores:
        """0…1: how well the statistics of one tensor agree; 0 where one side has none."""
        mine = self.target.statistics[ours, which]
        share = np.zeros(max(len(ours), len(theirs)), np.float32)
        if not np.isnan(mine[:, 0]).all():
            distance = _distance(mine, self.golden.statistics[theirs, which])
            for limit, part in _AGREEMENT:
                share += (distance <= limit) * np.float32(part)
        checksums = self.checksums[0][ours, which]
        if checksums.any():
            share[(checksums > 0) & (checksums == self.checksums[1][theirs, which])] = 1
        return share

    def agree(self, ours: Sequence[int], theirs: Sequence[int], which: int) -> NDArray[np.bool_]:
        """Return which pairs of nodes agree in the statistics of one tensor, not merely because it is constant."""
        mine, other = np.array(ours, np.intp), np.array(theirs, np.intp)
        telling = self._weights[mine, which] == np.float32(_STATISTIC_WEIGHTS[which])
        return np.asarray((self._agreement(mine, other, which) > 0) & telling)

    def distance(self, ours: Numbers, theirs: Numbers, which: int) -> Scores:
        """The largest relative difference of the statistics of one tensor of pairs of nodes; NaN where one has none."""
        mine, other = np.array(ours, np.intp), np.array(theirs, np.intp)
        return _distance(self.target.statistics[mine, which], self.golden.statistics[other, which])

    def conflict(self, ours: Sequence[int], theirs: Sequence[int], which: int) -> NDArray[np.bool_]:
        """Whether both hold statistics of this tensor and they are far apart."""
        mine, other = np.array(ours, np.intp), np.array(theirs, np.intp)
        distance = _distance(self.target.statistics[mine, which], self.golden.statistics[other, which])
        return np.asarray((distance > _FAR) & (self._agreement(mine, other, which) <= 0))


class Stretch:
    """Target nodes beside golden nodes; of the statistics only those near a target node's are looked at."""

    def __init__(self, evidence: ModuleScores, ours: Sequence[int], theirs: Sequence[int]) -> None:
        self.evidence = evidence
        self.ours, self.theirs = np.array(ours, np.intp), np.array(theirs, np.intp)
        statistics, statistics_there = evidence.target.statistics[self.ours], evidence.golden.statistics[self.theirs]
        mine, norms = statistics[:, :, 0], statistics_there[:, :, 0]
        self._order = np.argsort(norms, axis=0)
        self._highest = np.take_along_axis(statistics_there[:, :, 1], self._order, axis=0)
        self._mine, self._reach = statistics[:, :, 1], _AGREEMENT[-1][0] * np.abs(statistics[:, :, 1:]).max(axis=2)
        self._spans = np.zeros((len(ours), 3, 2), np.intp)
        farthest = 1.01 * _AGREEMENT[-1][0]
        for which in _STATISTIC_WEIGHTS:
            in_order = norms[self._order[:, which], which]
            known = ~np.isnan(mine[:, which])
            for end, (side, factor) in enumerate((("left", 1 - farthest), ("right", 1 + farthest))):
                limits = mine[known, which] * np.float32(factor)
                self._spans[known, which, end] = np.searchsorted(in_order, limits, side)  # type: ignore[call-overload]
        self._checksums = evidence.checksums[0][self.ours], evidence.checksums[1][self.theirs]
        self._known: dict[tuple[int, ...], Scores] = {}

    def row(self, place: int) -> Scores:
        """Scores of a target node with all golden nodes, as ``possible`` gives them."""
        number = int(self.ours[place])
        near = [(which, places) for which in _STATISTIC_WEIGHTS if len(places := self._near(place, which))]
        if near:
            scores = self.evidence.structural(number)[self.theirs]
            for which, places in near:
                scores[places] += self.evidence.statistic_scores(self.ours[[place]], self.theirs[places], which)
            return possible(scores)
        key = self.evidence.structure(number)
        if key not in self._known:
            self._known[key] = possible(self.evidence.structural(number)[self.theirs])
        return self._known[key]

    def _near(self, place: int, which: int) -> NDArray[np.intp]:
        """Places whose norm and maximum may agree, or whose checksum does."""
        first, last = self._spans[place, which].tolist()
        apart = np.abs(self._highest[first:last, which] - self._mine[place, which])
        places = self._order[first:last, which][apart <= self._reach[place, which]]
        if checksum := self._checksums[0][place, which]:
            return np.union1d(places, np.flatnonzero(self._checksums[1][:, which] == checksum))
        return places


def _distance(mine: NDArray[np.float32], theirs: NDArray[np.float32]) -> Scores:
    """The largest relative difference of norm, maximum and minimum; the extremes relative to the larger of the two."""
    tiny = np.float32(1e-30)
    with np.errstate(invalid="ignore", over="ignore"):
        norm = np.abs(theirs[:, 0] - mine[:, 0]) / np.maximum(np.abs(mine[:, 0]), tiny)
        scale = np.maximum(np.abs(mine[:, 1:]).max(axis=1), tiny)
        highest, lowest = np.abs(theirs[:, 1] - mine[:, 1]), np.abs(theirs[:, 2] - mine[:, 2])
        return np.asarray(np.maximum(norm, np.maximum(highest, lowest) / scale), np.float32)


class _Table:
    """The scores of a property: every pair of the commonest values is scored once, other values score 0."""

    def __init__(
        self, target: Outline, golden: Outline, key: Callable[[Node], Hashable], score: Callable[..., float]
    ) -> None:
        ours, self.ours = _distinct([key(node) for node in target.nodes])
        theirs, places = _distinct([key(node) for node in golden.nodes])
        self.theirs = np.array(places, np.intp)
        self.scores = np.zeros((len(ours) + 1, len(theirs) + 1), np.float32)
        self.scores[:-1, :-1] = np.array([[score(a, b) for b in theirs] for a in ours]).reshape(len(ours), len(theirs))


def _distinct(values: Sequence[Hashable]) -> tuple[list[Hashable], list[int]]:
    """The commonest values, and the place of each node's among them, one behind the last for the others."""
    common = [value for value, _ in Counter(values).most_common(_VALUES)]
    places = {value: place for place, value in enumerate(common)}
    return common, [places.get(value, len(common)) for value in values]


def _interned(target: Outline, golden: Outline) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Checksums as numbers, 0 where there is none."""
    known: dict[str | None, int] = {None: 0}
    ours, theirs = (
        np.array([[known.setdefault(md5, len(known)) for md5 in node.checksums] for node in side.nodes], np.int64)
        for side in (target, golden)
    )
    return ours.reshape(-1, 3), theirs.reshape(-1, 3)


#: Class name, whether it has children, whether its kind is known, and the shape of its weight if that is a matrix.
_Class = tuple[str, bool, bool, Shape | None]


def _class_key(node: Node) -> _Class:
    weight = node.largest_parameter
    return node.class_name, bool(node.children), node.kind is not None, weight if len(weight) == 2 else None


def _last_name(node: Node) -> str:
    """The attribute's name; elements of lists are alike in that, whatever their numbers."""
    last = node.path.rpartition(".")[2]
    return _NUMBER if last.isdigit() else last


def class_score(ours: _Class, theirs: _Class) -> float:
    """Known kinds decide; else the words of the class names. A leaf is rarely what has children elsewhere.

    Of one class the side that recorded less of it tells the kind of both.
    A convolution whose weight is a matrix (1 × 1) is of the family of dense layers beside one of that very shape.
    """
    kind = kind_of(ours[0]) if ours[2] else None
    other = kind_of(theirs[0]) if theirs[2] else None
    if ours[0] == theirs[0]:
        kind = other = kind or other
    if kind and other:
        products = {kind[0], other[0]} == {"linear", "convolution"} and ours[3] is not None and ours[3] == theirs[3]
        return 3.0 if kind == other else 0.75 if products or kind[0] == other[0] else _OTHER_KIND
    score = 2.0 * likeness(ours[0], theirs[0])
    if ours[1] != theirs[1]:
        score += OTHER_DEPTH
    return score - 1.0 if kind or other else score


@lru_cache(maxsize=65536)
def shape_score(ours: Shape | None, theirs: Shape | None) -> float:
    """1 for equal shapes, less for another layout or another batch or image size, negative for what cannot be."""
    if ours is None or theirs is None:
        return 0.0
    if ours == theirs:
        return 1.0
    if sorted(ours) == sorted(theirs):
        return 0.75
    if math.prod(ours) == math.prod(theirs):
        return 0.5
    # Same features, other extents: a batch of another size, a picture padded otherwise.
    features = 1 if len(ours) >= 4 else -1
    if len(ours) == len(theirs) >= 2 and ours[features] == theirs[features]:
        return 0.0
    return -2.0


def parameter_score(ours: tuple[Shape, ...] | None, theirs: tuple[Shape, ...] | None) -> float:
    """Where both dumps record parameters, having none speaks too."""
    if ours is None and theirs is None:
        return 0.0
    if ours is None or theirs is None:
        return UNSHARED_PARAMETERS
    return _shared_parameters(ours, theirs)


def _shared_parameters(ours: tuple[Shape, ...] | None, theirs: tuple[Shape, ...] | None) -> float:
    if ours is None or theirs is None:
        return 0.0
    if ours == theirs:
        return 2.0
    largest = max(ours, key=math.prod) == max(theirs, key=math.prod)
    return 1.0 if largest else -4.0
