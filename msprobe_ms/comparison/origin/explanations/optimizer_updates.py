"""Updates of the parameters: what both optimizers made of gradients that agree, and what is computed from it.

An optimizer that divides by the size of a gradient, as Adam does, makes steps of full size of what is rounding in it,
and where a gradient is as small as its epsilon, frameworks that add it in other places make other steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.fingerprints import fingerprints
from msprobe_ms.comparison.model import Allowance, Row
from msprobe_ms.comparison.origin.propagation import DRIFT
from msprobe_ms.comparison.origin.protocols import Phase
from msprobe_ms.comparison.origin.updates import place_of

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.search import Walk

#: Times that a deviation may be larger than the one that sketches of updates estimate: 2.3 was seen, of some hundred
#: parameters of a network.
_ESTIMATE = 3.0


class OptimizerUpdates:
    """Parameters as far apart as their updates were, and inputs that drifted once there were updates."""

    name: ClassVar[str] = "optimizer updates"
    phase: ClassVar[Phase] = Phase.WALK

    def __init__(self, evidence: Evidence) -> None:
        self._updated, self._apart = evidence.updated, evidence.apart_by_updates
        #: The same by the recorded tensors: functions take a parameter in before its module's entry tells whose it is.
        self._tensors = {
            both: self._apart[place]
            for node in (evidence.nodes if self._apart else ())
            for row in node.rows("parameters")
            if (place := place_of(row)) in self._apart and None not in (both := fingerprints(row))
        }

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """Of a parameter what its update explains, where optimizers do the same; of an input a drift of tolerances."""
        if row.held_to is None or row.state not in ("parameters", "input"):
            return None
        if self._apart:
            is_parameter = row.state == "parameters"
            apart = self._apart.get(place_of(row)) if is_parameter else self._tensors.get(fingerprints(row))
            if apart is not None:
                return Allowance(self.name, row.held_to + _ESTIMATE * apart)
        if not self._updated or row.state != "input":
            return None
        return Allowance(self.name, DRIFT * row.held_to)
