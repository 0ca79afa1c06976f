"""Inputs of calls that come out right: whatever they differ by has no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.model import Allowance, Row
from msprobe_ms.comparison.origin.protocols import Phase

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.walk import Walk


class HarmlessInputs:
    """Inputs that differ where all results of the call agree; their difference may still reach others."""

    name: ClassVar[str] = "input without effect"
    phase: ClassVar[Phase] = Phase.WALK

    def __init__(self, evidence: Evidence) -> None:
        self._allowance = Allowance(self.name)

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """Anything, of an input of a call that comes out right; nothing where dumps were equal to the bit so far."""
        if row.state != "input" or not node.comes_out_right or walk.reached.negligible(node) < 1:
            return None
        return self._allowance
