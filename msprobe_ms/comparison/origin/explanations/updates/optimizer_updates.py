"""Updates of the parameters: what both optimizers made of gradients that agree, and what is computed from it.

An optimizer that divides by the size of a gradient, as Adam does, makes steps of full size of what is rounding in it,
and where a gradient is as small as its epsilon, frameworks that add it in other places make other steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.model import Allowance, Row
from msprobe_ms.comparison.origin.propagation import DRIFT
from msprobe_ms.comparison.origin.protocols import Phase

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.walk import Walk


class OptimizerUpdates:
    """Parameters as far apart as their updates were, and inputs that drifted once there were updates."""

    name: ClassVar[str] = "optimizer updates"
    phase: ClassVar[Phase] = Phase.WALK

    def __init__(self, evidence: Evidence) -> None:
        self._updated, self._set_apart = evidence.updated, evidence.set_apart_by_updates

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """Of a parameter what its update explains, where optimizers do the same; of an input a drift of tolerances."""
        if row.held_to is None or row.state not in ("parameters", "input"):
            return None
        if (up_to := self._set_apart(row)) is not None:
            return Allowance(self.name, up_to)
        if not self._updated or row.state != "input":
            return None
        return Allowance(self.name, DRIFT * row.held_to)
