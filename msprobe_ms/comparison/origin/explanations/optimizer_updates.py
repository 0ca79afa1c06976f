"""Updates of the parameters: what is computed from parameters that were updated drifts further."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.model import Allowance, Row
from msprobe_ms.comparison.origin.propagation import DRIFT
from msprobe_ms.comparison.origin.protocols import Phase

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.search import Walk


class OptimizerUpdates:
    """Inputs that drifted, once the parameters have been through updates."""

    name: ClassVar[str] = "optimizer updates"
    phase: ClassVar[Phase] = Phase.WALK

    def __init__(self, evidence: Evidence) -> None:
        self._updated = evidence.updated

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """A drift of some tolerances in an input."""
        if not self._updated or row.state != "input" or row.held_to is None:
            return None
        return Allowance(self.name, DRIFT * row.held_to)
