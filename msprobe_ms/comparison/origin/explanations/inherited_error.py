"""What a value is computed from differs already, so that it may differ however far."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.model import Allowance, Row
from msprobe_ms.comparison.origin.propagation import DRIFT
from msprobe_ms.comparison.origin.protocols import Phase

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.walk import Walk


#: Times that a value may be further apart than what it is computed from while no origin is known: ten times what
#: attention over sharp logits was seen to make of its inputs, thirty.
_MOST = 300.0


class InheritedError:
    """A result or parameter after inputs that differ; an input once something jumped."""

    name: ClassVar[str] = "inherited error"
    phase: ClassVar[Phase] = Phase.WALK

    def __init__(self, evidence: Evidence) -> None:
        self._allowance = Allowance(self.name)

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """Anything behind an origin; before one has been found, some hundred times what a result is computed from.

        Of a tensor that a mask has filled nothing tells how far it drifted: as far as anything before. What a module is
        given in another form explains no result in the same form: a mask may be made in two ways. Of a module whose
        inputs could not be compared, those inside it tell what it took in.
        """
        reached = walk.reached.before(node)
        jumped = reached > DRIFT
        if row.state == "input":
            return walk.no_more_than_amplified(self._of(row, reached, walk), row, node) if jumped else None
        if row.state == "parameters" and not walk.origins:
            return None  # no call changes what it holds; once there is an origin, earlier steps may have had it too
        least = 1 if jumped else DRIFT
        in_one_form = node.is_module_call and row.deviation is not None and math.isfinite(row.deviation)
        before = node.ratio_before_of_one_form if in_one_form else node.ratio_before
        if node.is_module_call and not node.takes_in_compared_tensors:
            before = max((before, *(child.ratio_in for child in node.children)))
        if not (before > least and walk.origins) and node.takes_in_fills:
            before = max(before, walk.reached.largest)
        return walk.no_more_than_amplified(self._of(row, before, walk), row, node) if before > least else None

    def _of(self, row: Row, before: float, walk: Walk) -> Allowance:
        """``before``: the error ratio of what it is computed from."""
        if walk.origins or walk.doubted or row.held_to is None or not math.isfinite(before):
            return self._allowance
        return Allowance(self.name, _MOST * before * row.held_to)
