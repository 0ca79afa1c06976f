"""Updates of the parameters: what both optimizers made of gradients that agree, and what is computed from it.

An optimizer that divides by the size of a gradient, as Adam does, makes steps of full size of what is rounding in it,
and where a gradient is as small as its epsilon, frameworks that add it in other places make other steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from msprobe_ms.arrays import sketch
from msprobe_ms.comparison.model import Allowance, Row
from msprobe_ms.comparison.origin.propagation import DRIFT
from msprobe_ms.comparison.origin.protocols import Phase
from msprobe_ms.comparison.origin.updates import Update

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.search import Walk

#: Optimizers do the same when the updates of half of all parameters differ by no more than this part.
_SAME = 0.2
#: Times that a deviation may be larger than the one that sketches of updates estimate.
_ESTIMATE = 2.0


class OptimizerUpdates:
    """Parameters as far apart as their updates were, and inputs that drifted once there were updates."""

    name: ClassVar[str] = "optimizer updates"
    phase: ClassVar[Phase] = Phase.WALK

    def __init__(self, evidence: Evidence) -> None:
        self._updated = evidence.updated
        known = [each for each in evidence.updates if each.is_known]
        same = bool(known) and float(np.median([each.apart for each in known])) <= _SAME
        #: By module and name, as a module's parameter has a row for each of its calls.
        self._apart = {_place(each.row): _deviation(each) for each in known} if same else {}

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """Of a parameter what its update explains, where optimizers do the same; of an input a drift of tolerances."""
        if row.held_to is None:
            return None
        if row.state == "parameters":
            apart = self._apart.get(_place(row))
            return None if apart is None else Allowance(self.name, row.held_to + _ESTIMATE * apart)
        if not self._updated or row.state != "input":
            return None
        return Allowance(self.name, DRIFT * row.held_to)


def _place(row: Row) -> tuple[str, tuple[str, ...]]:
    item = row.target
    return (item.entry.partition(".forward.")[0], item.path) if item is not None else ("", ())


def _deviation(update: Update) -> float:
    """By how much of the parameter its two updates differ."""
    now = sketch.norm(update.held + update.theirs)
    return sketch.distance(update.ours, update.theirs) / now if now else 0.0
