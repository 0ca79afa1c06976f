"""Error of which no single node makes too much: where it crosses the tolerance, and where it grows most."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msprobe_ms.comparison.measuring.tolerances import Tolerances
from msprobe_ms.comparison.model import Origin, OriginKind, Row
from msprobe_ms.comparison.origin.explanations.loss_condition import LossCondition
from msprobe_ms.comparison.origin.explanations.relu_switching import ReluSwitching
from msprobe_ms.comparison.origin.explanations.waves import Waves
from msprobe_ms.comparison.origin.nodes import RESULTS, Node, error_ratio, worst
from msprobe_ms.comparison.origin.propagation import DRIFTED, GAIN_IN_DOUBT, drift_after
from msprobe_ms.comparison.origin.sentences import describe_briefly, describe_difference, fitting, origin_at
from msprobe_ms.comparison.origin.small_gradients import is_legible_beside_noise
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.walk import Walk


class Growth(NamedTuple):
    """A value in forward, its error ratio, and the largest one of what it is computed from, 1 at least."""

    row: Row
    before: float
    after: float

    @property
    def factor(self) -> float:
        return self.after / self.before

    def __str__(self) -> str:
        name = self.row.target.name if self.row.target is not None else ""
        after = (
            tr("{after:.3g} times its tolerance", after=self.after)
            if math.isfinite(self.after)
            else tr("beyond measure")
        )
        return tr("{name}, from {before:.3g} to {after}", name=name, before=self.before, after=after)


class SlowDrift:
    """Nothing jumps, yet something is far out of bounds: the first value that is out of bounds at all."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence

    def find(self, walk: Walk, found: Sequence[tuple[float, Origin]]) -> list[tuple[float, Origin]]:
        """One origin where nothing else is; none after updates of the parameters, which make rounding grow as far.

        ``far_apart`` tells what is beyond that. Gradients do not count where switching, or the condition
        of the loss, explains what they differ by.
        """
        if found or self._evidence.updated:
            return []
        switched = any(walk.largest_allowed.get(each.name, 0.0) > 0 for each in (ReluSwitching, LossCondition))
        nodes = (node for node in self._evidence.nodes if not (node.is_loss or node.is_update))
        # A framework with itself is held to a smaller tolerance, as it uses the same kernels as a rule. Where it does
        # not, rounding adds up as between two frameworks.
        share = Tolerances().same_framework if self._evidence.same_framework else 1.0
        origin = _drift([node for node in nodes if not (switched and node.is_backward)], DRIFTED / share)
        return [] if origin is None else [(0, origin)]


def _drift(judged: list[Node], drifted: float) -> Origin | None:
    """``drifted``: the error ratio from which on drift is told."""
    by_condition = drift_after(node for node in judged if not node.is_backward)
    bound = max(drifted, by_condition, DRIFTED * max(map(_of_waves, judged), default=0.0))
    if not any(_is_beyond(bound, row, node) for node in judged for row in _with_effect(node)):
        return None
    worst_rows = (worst(_with_effect(node)) for node in judged)
    first = next((row for row in worst_rows if row is not None and error_ratio(row) > 1), None)
    if first is None:
        return None
    crossing = tr("the error grows gradually and exceeds the tolerance here")
    difference, growth = describe_difference(first), steepest(judged)
    if growth is None or growth.row is first:
        reason = fitting(
            tr("{crossing}: {difference}", crossing=crossing, difference=difference),
            tr("{crossing}: {briefly}", crossing=crossing, briefly=describe_briefly(first)),
        )
        return origin_at(first, reason, kind=OriginKind.DRIFT)
    if growth.factor > GAIN_IN_DOUBT or _is_most(growth, judged):  # what is no drift, however much drifted before
        most = tr("most of the error that accumulates around this call is added here")
        reason = fitting(
            tr("{difference}: {most}", difference=describe_difference(growth.row), most=most),
            tr("{briefly}: {most}", briefly=describe_briefly(growth.row), most=most),
        )
        return origin_at(growth.row, reason, [tr("it grows at {growth}", growth=growth)], OriginKind.DRIFT)
    look = tr("look where it grows most")
    reason = fitting(
        tr("{crossing}: {difference}; {look}", crossing=crossing, difference=difference, look=look),
        tr("{crossing}: {briefly}; {look}", crossing=crossing, briefly=describe_briefly(first), look=look),
    )
    return origin_at(first, reason, [tr("it grows most at {growth}", growth=growth)], OriginKind.DRIFT)


def _is_most(growth: Growth, judged: list[Node]) -> bool:
    """Whether error grows more here than at all other calls together, from the tolerance to the most of forward."""
    most = max((node.ratio_out for node in judged if not node.is_backward), default=0.0)
    return growth.factor > math.sqrt(most)


def _of_waves(node: Node) -> float:
    """The error ratio of what a call takes in that waves of large arguments are off by."""
    taken = (row for row in node.rows("input") if row.explained_by == Waves.name)
    return max(map(error_ratio, taken), default=0.0)


def _is_beyond(bound: float, row: Row, node: Node) -> bool:
    """Whether a row drifted that far: of a gradient next to nothing, its noise beside other sizes is no drift."""
    return error_ratio(row) > bound and not (node.is_backward and is_legible_beside_noise(row))


def _with_effect(node: Node) -> Iterable[Row]:
    """Its rows, without the inputs of a call that comes out right, and without parameters as far apart as updates are.

    No computation adds to these: gradients that are rounding alone, of a bias before a norm, may set them apart.
    """
    rows = node.rows(*RESULTS, "parameters") if node.comes_out_right else node.pair.rows
    return (row for row in rows if not (row.state == "parameters" and _is_explained(row)))


def _is_explained(row: Row) -> bool:
    return row.explained is not None and (row.deviation or 0.0) <= row.explained.up_to


def steepest(nodes: list[Node]) -> Growth | None:
    """Find the value in forward whose error ratio grew most over what came before; None where none is beyond 1."""
    found: Growth | None = None
    seen = 1.0
    for node in nodes:
        if node.is_backward or node.is_save or node.is_update:
            continue
        arrived = None if node.comes_out_right else worst(node.rows("input"))
        given = worst(node.rows(*RESULTS))
        inside = (each.ratio_out for each in node.children)  # what grew there is not added by the code around it
        for row, before in ((arrived, seen), (given, max(1.0, node.ratio_taken, *inside))):
            after = error_ratio(row) if row is not None else 0.0
            if row is not None and after > before and (found is None or after / before > found.factor):
                found = Growth(row, before, after)
        seen = max(seen, node.ratio_in, node.ratio_parameters, node.ratio_out, node.ratio_without_effect)
    return found
