"""Compare the gradients of two trainings: at which step, of which parameters, on which ranks they part.

The similarity of two gradients is the share of elements that are above zero on both sides or on neither. As in the
documentation of msprobe 1.1.0 (grad_probe), a step is marked where the first one is below 0.97, or where the similarity
falls by more than 0.03 from one step to the next. A ratio of norms, the smaller by the larger, is marked alike: a
gradient that is scaled keeps its signs.

A gradient counts only if it is more than rounding. That of a bias before a normalisation is zero in exact arithmetic:
what is left are rounding errors of sums, whose signs are chance. The error of a sum of n terms is about √n·ε of their
norm (Higham and Mary, "A new approach to probabilistic rounding error analysis", 2019), and the terms are of the size
of the gradients of the same step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.gradients.read import Gradient, RankGradients, open_ranks
from msprobe_ms.support.errors import DumpFormatError, UsageError
from msprobe_ms.support.translation import tr, tr_list
from msprobe_ms.weights.names import pair_names

#: Similarity below which the first step is marked, and the fall from one step to the next above which that is.
LEAST_AT_FIRST, MOST_FALL = 0.97, 0.03
#: Of the largest norm of a step and a side, what rounding may leave: √n·ε of float32 for n = 4096 terms. Tables name no
#: dtype, and with ε of a shorter one less would count. Biases of convolutions before a BatchNorm are below 13 ε of the
#: largest norm, with up to 16384 terms a sum; the least of the other gradients is at 30000 ε.
ROUNDING = 64 * float(np.finfo(np.float32).eps)


@dataclass(slots=True)
class GradientRow:
    """A parameter's gradient at one step of one rank, beside its counterpart.

    ``similarity``  share of elements of one direction, 0 to 1; None where it is not known, which ``note`` says
    ``norm_ratio``  the smaller norm by the larger, 0 to 1; None where a norm is not known
    ``rounding``    whether both gradients are so small beside others of the step that they are rounding alone
    """

    rank: int
    step: int
    name: str
    golden: str
    elements: int = 0
    similarity: float | None = None
    target_norm: float | None = None
    golden_norm: float | None = None
    norm_ratio: float | None = None
    rounding: bool = False
    note: str = ""


@dataclass(slots=True)
class Parting:
    """The first step at which something is marked: its rows, the least similar first, and what marks them."""

    step: int
    rows: list[GradientRow]
    by: str


@dataclass(slots=True)
class GradientComparison:
    """``rows`` by rank, step and the target's order; ``alone`` what one side alone has, in words."""

    target: Path
    golden: Path
    rows: list[GradientRow] = field(default_factory=list)
    alone: list[str] = field(default_factory=list)

    @property
    def ranks(self) -> list[int]:
        return sorted({row.rank for row in self.rows})

    @property
    def steps(self) -> list[int]:
        return sorted({row.step for row in self.rows})

    @property
    def compared(self) -> list[GradientRow]:
        """Rows of which something is known on both sides."""
        return [row for row in self.rows if row.similarity is not None or row.norm_ratio is not None]

    @property
    def rounding_alone(self) -> list[str]:
        """Parameters whose gradients are rounding alone in some step."""
        return list(dict.fromkeys(row.name for row in self.rows if row.rounding))

    @property
    def parting(self) -> Parting | None:
        """Where the trainings part first: by directions, at the same step before norms; None where they do not."""
        found = [
            Parting(step, marked, by)
            for by, figure in (("direction", _similarity), ("norm", _norm_ratio))
            for step, marked in [_first_marked(self.rows, figure)]
            if marked
        ]
        return min(found, key=lambda each: each.step, default=None)


def compare_gradients(
    target: Path, golden: Path, mappings: Mappings, progress: Callable[[int, int], object] | None = None
) -> GradientComparison:
    """Compare what task grad_probe wrote of two trainings; ranks and steps that both have.

    ``progress`` is called with the number of steps done and of all.

    :raises UsageError: one holds no gradients, or they have no rank or no step in common
    """
    ours, theirs = open_ranks(target), open_ranks(golden)
    comparison = GradientComparison(target, golden)
    ranks = _common("ranks", ours, theirs, comparison)
    todo = [(rank, step) for rank in ranks for step in ours[rank].tables if step in theirs[rank].tables]
    if not todo:
        raise UsageError(
            tr(
                "no matched steps: of rank {ranks} the target has {shown}, the golden has {other_shown}; "
                "record the same steps",
                ranks=ranks[0],
                shown=_shown(ours[ranks[0]].tables),
                other_shown=_shown(theirs[ranks[0]].tables),
            )
        )
    for rank in ranks:
        _common_or_told(tr("rank {rank}: steps", rank=rank), ours[rank].tables, theirs[rank].tables, comparison)
    pairing = _Pairing(mappings)
    for done, (rank, step) in enumerate(todo, 1):
        comparison.rows += _rows(rank, step, ours[rank], theirs[rank], pairing)
        if progress is not None:
            progress(done, len(todo))
    return comparison


def _common(
    what: str, ours: Mapping[int, object], theirs: Mapping[int, object], comparison: GradientComparison
) -> list[int]:
    common = _common_or_told(what, ours, theirs, comparison)
    if not common:
        raise UsageError(
            tr(
                "no matched {what}: the target has {shown}, the golden has {other_shown}; give two trainings "
                "of the same ranks, or the folders of one rank each",
                what=what,
                shown=_shown(ours),
                other_shown=_shown(theirs),
            )
        )
    return common


def _common_or_told(
    what: str, ours: Mapping[int, object], theirs: Mapping[int, object], comparison: GradientComparison
) -> list[int]:
    """What both have; what one alone has is noted."""
    for side, own, other in ((tr("target"), ours, theirs), (tr("golden"), theirs, ours)):
        if alone := [each for each in own if each not in other]:
            comparison.alone.append(
                tr("{what} only in the {side}: {shown}", what=what, side=tr(side), shown=_shown(alone))
            )
    return [each for each in ours if each in theirs]


def _shown(numbers: Sequence[int] | Mapping[int, object]) -> str:
    found = sorted(numbers)
    return tr_list([*map(str, found[:10]), *(["…"] if len(found) > 10 else [])])


class _Pairing:
    """Pairs names of parameters, once for all tables of the same names."""

    def __init__(self, mappings: Mappings) -> None:
        self._mappings = mappings
        self._names: tuple[tuple[str, ...], tuple[str, ...]] | None = None
        self._pairs: dict[str, str] = {}

    def of(self, target: tuple[str, ...], golden: tuple[str, ...]) -> dict[str, str]:
        """Target name → golden name."""
        if self._names != (target, golden):
            found = pair_names(target, golden, self._mappings, warn=self._names is None)
            self._names, self._pairs = (target, golden), {name: other for name, (other, _) in found.items()}
        return self._pairs


def _rows(
    rank: int, step: int, target: RankGradients, golden: RankGradients, pairing: _Pairing
) -> Iterator[GradientRow]:
    try:
        ours, theirs = target.read(step), golden.read(step)
    except DumpFormatError as error:
        yield GradientRow(rank, step, "", "", note=tr("{error}", error=error))
        return
    pairs = pairing.of(tuple(ours), tuple(theirs))
    bounds = _rounding_bound(ours), _rounding_bound(theirs)
    for name, gradient in ours.items():
        if name in pairs:
            counterpart = pairs[name]
            row = GradientRow(rank, step, name, counterpart)
            _measure(row, (target, gradient), (golden, theirs[counterpart]))
            row.rounding = _is_rounding((row.target_norm, row.golden_norm), bounds)
            yield row
        else:
            yield GradientRow(rank, step, name, "", note=tr("only in the target"))
    paired = set(pairs.values())
    for name in theirs:
        if name not in paired:
            yield GradientRow(rank, step, "", name, note=tr("only in the golden"))


def _rounding_bound(gradients: Mapping[str, Gradient]) -> float:
    """Up to which norm a gradient of this step may be rounding alone."""
    norms = (gradient.norm for gradient in gradients.values())
    return ROUNDING * max((norm for norm in norms if norm is not None and math.isfinite(norm)), default=0.0)


def _is_rounding(norms: tuple[float | None, float | None], bounds: tuple[float, float]) -> bool:
    """Both are within their bounds, and not both zero, which is exact and equal."""
    small = all(norm is not None and 0 <= norm <= bound for norm, bound in zip(norms, bounds, strict=True))
    return small and any(norms)


def _measure(row: GradientRow, target: tuple[RankGradients, Gradient], golden: tuple[RankGradients, Gradient]) -> None:
    (our_folder, ours), (their_folder, theirs) = target, golden
    row.target_norm, row.golden_norm = ours.norm, theirs.norm
    row.norm_ratio = _ratio(ours.norm, theirs.norm)
    row.elements = math.prod(ours.shape or theirs.shape or ())
    try:
        one = our_folder.directions(row.step, row.name)
        other = their_folder.directions(row.step, row.golden)
    except DumpFormatError as error:
        row.note = tr("{error}", error=error)
        return
    if one is None or other is None:
        if ours.checksum and ours.checksum == theirs.checksum:
            row.similarity = 1.0
        else:
            row.note = _without_signs(in_target=one is not None, in_golden=other is not None)
        return
    if (aligned := _aligned(one, other)) is None:
        row.note = tr("shapes {shape} and {other_shape} differ", shape=list(one.shape), other_shape=list(other.shape))
    elif one.size == 0:
        row.note = tr("no elements")
    else:
        row.elements = one.size
        row.similarity = float(np.count_nonzero(one == aligned)) / one.size


def _without_signs(*, in_target: bool, in_golden: bool) -> str:
    if in_target or in_golden:
        return tr("the {side} has no signs (grad_level L0 writes none)", side=tr("golden" if in_target else "target"))
    return tr("neither side has signs (grad_level L0 writes none)")


def _ratio(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return None
    if one == other:
        return 1.0
    if not (math.isfinite(one) and math.isfinite(other)):
        return 1.0 if math.isnan(one) and math.isnan(other) else 0.0
    return min(one, other) / max(one, other) if min(one, other) >= 0 else None


def _aligned(one: np.ndarray, other: np.ndarray) -> np.ndarray | None:
    """``other`` in the layout of ``one``: axes of length 1 do not count, and a matrix may be transposed."""
    if one.shape == other.shape:
        return other
    squeezed, wanted = other.squeeze(), one.squeeze().shape
    if squeezed.shape == wanted:
        return squeezed.reshape(one.shape)
    if squeezed.ndim == 2 and squeezed.shape[::-1] == wanted:
        return squeezed.T.reshape(one.shape)
    return None


def _similarity(row: GradientRow) -> float | None:
    return row.similarity


def _norm_ratio(row: GradientRow) -> float | None:
    return row.norm_ratio


def _first_marked(
    rows: Sequence[GradientRow], figure: Callable[[GradientRow], float | None]
) -> tuple[int, list[GradientRow]]:
    """The first step at which a parameter is marked by this figure, and its rows there, those furthest apart first."""
    courses: dict[tuple[int, str], list[GradientRow]] = {}
    for row in rows:
        if figure(row) is not None and not row.rounding:
            courses.setdefault((row.rank, row.name), []).append(row)
    marked: dict[int, list[GradientRow]] = {}
    for course in courses.values():
        before: float | None = None
        for row in sorted(course, key=lambda each: each.step):
            value = figure(row)
            assert value is not None
            if value < LEAST_AT_FIRST if before is None else before - value > MOST_FALL:
                marked.setdefault(row.step, []).append(row)
                break
            before = value
    if not marked:
        return 0, []
    step = min(marked)
    return step, sorted(marked[step], key=lambda row: figure(row) or 0.0)


def overall(rows: Sequence[GradientRow]) -> float | None:
    """Return the similarity of all elements of these rows; None where none is known."""
    known = [(row.similarity, row.elements) for row in rows if row.similarity is not None]
    elements = sum(count for _, count in known)
    return sum(value * count for value, count in known) / elements if elements else None
