"""What stood beside another value than its counterpart in the first step does so in later ones: the code is the same.

In the first step all but that agrees to rounding, which shows that it is no error. Later, updates have set apart what
would show it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.model import Allowance, Effect, Row
from msprobe_ms.comparison.origin.propagation import BESIDE_ANOTHER
from msprobe_ms.comparison.origin.protocols import Phase

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.walk import Walk


class OtherValueAtFirst:
    """Inputs and results, far apart, that are known to have stood beside others in the first step."""

    name: ClassVar[str] = "other value at first"
    phase: ClassVar[Phase] = Phase.WALK

    def __init__(self, evidence: Evidence) -> None:
        self._allowance = Allowance(self.name, effect=Effect.NO_ERROR)

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """Anything, where nothing that was computed in the first step followed from it."""
        if row.state not in ("input", "output") or not (row.deviation or 0.0) > BESIDE_ANOTHER:
            return None
        return self._allowance if walk.stood_beside_another(row) else None
