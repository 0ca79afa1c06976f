"""Calls whose results were wrong in the first recorded step: later ones compute with the same code.

There nothing had drifted yet. A result that was further apart than what its call took in explains was computed wrongly,
and no drift excuses it later, but for as much as comes in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msprobe_ms.comparison.measuring.deviation import statistic_deviation
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.origin.earlier_steps import same_item
from msprobe_ms.comparison.origin.propagation import first_explained_ratio, set_apart_by_inputs
from msprobe_ms.comparison.statistics import have_sketches
from msprobe_ms.comparison.terms import GOLDEN

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node


class WrongAtFirst:
    """Which results of forward calls were wrong in the first step, and what error that comes in explains of them."""

    def __init__(self, evidence: Evidence) -> None:
        self._first = evidence.first_step

    def limit(self, row: Row, node: Node) -> float | None:
        """Return the deviation of a result that error in what its call takes in may explain; None: any."""
        if self._first is None or row.state != "output" or node.is_backward or not self._was_wrong(row, node):
            return None
        taken = max((each.deviation or 0.0 for each in _tensors(node)), default=0.0)
        return set_apart_by_inputs(row, node, taken)

    def _was_wrong(self, row: Row, node: Node) -> bool:
        given = self._ratio(row)
        if given is None or not given > 1:
            return False
        taken = [self._ratio(each) for each in _tensors(node)]
        known = [ratio for ratio in taken if ratio is not None]
        return bool(known) and len(known) == len(taken) and given > first_explained_ratio(node, max(known))

    def _ratio(self, row: Row) -> float | None:
        """The error ratio of the same value in the first step; None where it is not known."""
        if self._first is None or row.target is None or row.golden is None or not row.tolerance:
            return None
        target, golden = same_item(self._first[0], row.target), same_item(self._first[1], row.golden)
        if target is None or golden is None or not have_sketches(target, golden):
            return None
        deviation = statistic_deviation(target, golden)
        return None if deviation is None else deviation / row.tolerance


def _tensors(node: Node) -> list[Row]:
    """What the results are computed from: what the call takes in, and what ran inside it."""
    inside = (row for child in node.children for row in child.rows("output"))
    return [row for row in (*node.rows("input", "parameters"), *inside) if row.is_tensor(GOLDEN)]
