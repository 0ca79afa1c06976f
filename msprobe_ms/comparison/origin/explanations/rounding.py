"""Rounding of a net of this dtype; hardly any while all was equal to the bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.model import Allowance, Row
from msprobe_ms.comparison.origin.protocols import Phase

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.walk import Walk


class Rounding:
    """The tolerance of a row, or less where many layers were equal to the bit so far."""

    name: ClassVar[str] = "rounding"
    phase: ClassVar[Phase] = Phase.WALK

    def __init__(self, evidence: Evidence) -> None:
        pass

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """The tolerance, which parameters keep always."""
        if row.held_to is None:
            return None
        negligible = 1.0 if row.state == "parameters" else walk.reached.negligible(node)
        return Allowance(self.name, negligible * row.held_to)
