"""How much speaks for two modules being the same one: kinds, shapes, names and figures, weighed and added.

The weights are in units of "one shape agrees"; all scores are multiples of 1/16, so that sums of them are exact in
float32 and two equally good alignments have equal scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from msprobe_ms.mapping.automatic.kinds import kind_of, likeness
from msprobe_ms.mapping.automatic.outline import INPUT, OUTPUT, PARAMETER, Node, Outline, Shape

Scores = NDArray[np.float32]

#: What agreeing figures count, of input, output and parameters: as much as they tell modules apart.
_FIGURE_WEIGHTS = {INPUT: 2.0, OUTPUT: 3.0, PARAMETER: 5.0}
#: Relative differences up to which figures agree, and how much of the weight each adds: rounding of one dtype,
#: accumulated rounding, a narrower dtype.
_AGREEMENT = ((1e-5, 0.4), (1e-3, 0.35), (2e-2, 0.25))
#: Figures of constants (a new LayerNorm's ones) agree with every other one's.
_CONSTANT = 0.1

#: From this relative difference on, figures are not those of one tensor.
_FAR = 0.1

_IMPOSSIBLE = -32.0


class Evidence:
    """Scores of every pair of a node of the target and one of the golden."""

    def __init__(self, target: Outline, golden: Outline) -> None:
        self.target, self.golden = target, golden
        recorded = target.has_parameters and golden.has_parameters
        self._tables = [
            _Table(target, golden, _class_key, class_score),
            _Table(target, golden, lambda node: node.output, lambda a, b: 2 * shape_score(a, b)),
            _Table(target, golden, lambda node: node.input, shape_score),
            _Table(target, golden, lambda node: node.parameters, parameter_score if recorded else _shared_parameters),
            _Table(target, golden, _last_name, lambda a, b: 0.75 * likeness(a, b)),
            _Table(target, golden, lambda node: min(node.calls, 16), lambda a, b: 0.25 if a == b else 0.0),
        ]
        self._structure: dict[tuple[int, ...], Scores] = {}
        self._checksums = _interned(target, golden)
        figures = target.figures
        share = np.where(figures[:, :, 1] == figures[:, :, 2], _CONSTANT, 1.0)
        #: What agreement of each figure of a target node adds.
        self._weights = (np.array([_FIGURE_WEIGHTS[which] for which in range(3)]) * share).astype(np.float32)

    def structure(self, number: int) -> tuple[int, ...]:
        """Equal for target nodes that all but figures say the same of."""
        return tuple(table.ours[number] for table in self._tables)

    def has_figures(self, number: int) -> bool:
        return not bool(np.isnan(self.target.figures[number, :, 0]).all() and not self._checksums[0][number].any())

    def structural(self, number: int) -> Scores:
        """Scores of one target node with all golden nodes, by all but figures."""
        key = self.structure(number)
        if key not in self._structure:
            total = sum((table.scores[row][table.theirs] for table, row in zip(self._tables, key, strict=True)))
            self._structure[key] = np.round(np.asarray(total, np.float32) * 16) / 16
        return self._structure[key]

    def row(self, number: int, others: NDArray[np.intp]) -> Scores:
        """Scores of one target node with some golden nodes, by everything."""
        return self.structural(number)[others] + self._figures(np.array([number]), others)

    def pairs(self, ours: Sequence[int], theirs: Sequence[int]) -> Scores:
        """Scores of pairs of nodes."""
        mine, other = np.array(ours, np.intp), np.array(theirs, np.intp)
        total = sum(table.scores[np.array(table.ours, np.intp)[mine], table.theirs[other]] for table in self._tables)
        return np.round(np.asarray(total, np.float32) * 16) / 16 + self._figures(mine, other)

    def _figures(self, ours: NDArray[np.intp], theirs: NDArray[np.intp]) -> Scores:
        """What agreeing figures add, of pairs or of one node with several."""
        total = np.zeros(max(len(ours), len(theirs)), np.float32)
        for which in _FIGURE_WEIGHTS:
            total += self._agreement(ours, theirs, which) * self._weights[ours, which]
        return np.round(total * 16) / 16

    def _agreement(self, ours: NDArray[np.intp], theirs: NDArray[np.intp], which: int) -> Scores:
        """0…1: how well the figures of one tensor agree; 0 where one side has none."""
        mine = self.target.figures[ours, which]
        share = np.zeros(max(len(ours), len(theirs)), np.float32)
        if not np.isnan(mine[:, 0]).all():
            distance = _distance(mine, self.golden.figures[theirs, which])
            for limit, part in _AGREEMENT:
                share += (distance <= limit) * np.float32(part)
        checksums = self._checksums[0][ours, which]
        if checksums.any():
            share[(checksums > 0) & (checksums == self._checksums[1][theirs, which])] = 1
        return share

    def agree(self, ours: Sequence[int], theirs: Sequence[int], which: int) -> NDArray[np.bool_]:
        """Whether the figures of one tensor of pairs of nodes agree, and do not only because they are a constant's."""
        mine, other = np.array(ours, np.intp), np.array(theirs, np.intp)
        telling = self._weights[mine, which] == np.float32(_FIGURE_WEIGHTS[which])
        return np.asarray((self._agreement(mine, other, which) > 0) & telling)

    def conflict(self, ours: Sequence[int], theirs: Sequence[int], which: int) -> NDArray[np.bool_]:
        """Whether both hold figures of this tensor and they are far apart."""
        mine, other = np.array(ours, np.intp), np.array(theirs, np.intp)
        distance = _distance(self.target.figures[mine, which], self.golden.figures[other, which])
        return np.asarray((distance > _FAR) & (self._agreement(mine, other, which) <= 0))


def _distance(mine: NDArray[np.float32], theirs: NDArray[np.float32]) -> Scores:
    """The largest relative difference of norm, maximum and minimum; the extremes relative to the larger of the two."""
    tiny = np.float32(1e-30)
    with np.errstate(invalid="ignore", over="ignore"):
        norm = np.abs(theirs[:, 0] - mine[:, 0]) / np.maximum(np.abs(mine[:, 0]), tiny)
        scale = np.maximum(np.abs(mine[:, 1:]).max(axis=1), tiny)
        highest, lowest = np.abs(theirs[:, 1] - mine[:, 1]), np.abs(theirs[:, 2] - mine[:, 2])
        return np.asarray(np.maximum(norm, np.maximum(highest, lowest) / scale), np.float32)


class _Table:
    """The scores of a property: few distinct values a side, every pair of them scored once."""

    def __init__(
        self, target: Outline, golden: Outline, key: Callable[[Node], Hashable], score: Callable[..., float]
    ) -> None:
        ours, self.ours = _distinct([key(node) for node in target.nodes])
        theirs, places = _distinct([key(node) for node in golden.nodes])
        self.theirs = np.array(places, np.intp)
        scores = [[score(a, b) for b in theirs] for a in ours]
        self.scores = np.array(scores, np.float32).reshape(len(ours), len(theirs))


def _distinct(values: Sequence[Hashable]) -> tuple[list[Hashable], list[int]]:
    known: dict[Hashable, int] = {}
    places = [known.setdefault(value, len(known)) for value in values]
    return list(known), places


def _interned(target: Outline, golden: Outline) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Checksums as numbers, 0 where there is none."""
    known: dict[str | None, int] = {None: 0}
    ours, theirs = (
        np.array([[known.setdefault(md5, len(known)) for md5 in node.checksums] for node in side.nodes], np.int64)
        for side in (target, golden)
    )
    return ours.reshape(-1, 3), theirs.reshape(-1, 3)


def _class_key(node: Node) -> tuple[str, bool, bool]:
    return node.class_name, bool(node.children), node.kind is not None


def _last_name(node: Node) -> str:
    last = node.path.rpartition(".")[2]
    return "" if last.isdigit() else last


def class_score(ours: tuple[str, bool, bool], theirs: tuple[str, bool, bool]) -> float:
    """Known kinds decide; else the words of the class names. A leaf is rarely what has children elsewhere."""
    kind = kind_of(ours[0]) if ours[2] else None
    other = kind_of(theirs[0]) if theirs[2] else None
    if kind and other:
        return 3.0 if kind == other else 0.75 if kind[0] == other[0] else _IMPOSSIBLE
    score = 2.0 * likeness(ours[0], theirs[0])
    if ours[1] != theirs[1]:
        score -= 1.5
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
        return -2.0
    return _shared_parameters(ours, theirs)


def _shared_parameters(ours: tuple[Shape, ...] | None, theirs: tuple[Shape, ...] | None) -> float:
    if ours is None or theirs is None:
        return 0.0
    if ours == theirs:
        return 2.0
    largest = max(ours, key=math.prod) == max(theirs, key=math.prod)
    return 1.0 if largest else -4.0
