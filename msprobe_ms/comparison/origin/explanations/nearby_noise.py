"""Inputs inside a module in which a parameter differs without effect: until it cancels, they carry its difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.model import Allowance, Row
from msprobe_ms.comparison.origin.protocols import Phase

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.search import Walk


class NearbyNoise:
    """Inputs of calls in the same module as a call whose parameters are optimizer noise."""

    name: ClassVar[str] = "nearby noise"
    phase: ClassVar[Phase] = Phase.WALK

    def __init__(self, evidence: Evidence) -> None:
        self._allowance = Allowance(self.name)

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """Anything, of an input where the noise around it is beyond a tolerance."""
        return self._allowance if row.state == "input" and walk.noise_around(node) > 1 else None
