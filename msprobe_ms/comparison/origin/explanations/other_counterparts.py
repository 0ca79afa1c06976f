"""A call paired with another than its counterpart: what it takes in and gives out stands beside other values.

That shows in forward, where it is far apart and yet the results around it agree. The same two calls stand beside each
other in backward, where little need agree to show it: once parameters were updated, no gradients of a step do. Where
what they take in stands beside another value, so does the gradient of that, which they hand on; where what they give
out does, the gradient that reaches them. What an error there makes of the gradients shows in the calls around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.origin.explanations.agreeing_results import AgreeingResults
from msprobe_ms.comparison.origin.explanations.agreeing_step import AgreeingStep
from msprobe_ms.comparison.origin.nodes import Node, error_ratio
from msprobe_ms.comparison.origin.propagation import BESIDE_ANOTHER
from msprobe_ms.comparison.origin.protocols import Surveyed

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence

#: What says of values that they stand beside others.
_BESIDE_OTHERS = (AgreeingResults.name, AgreeingStep.name)


class OtherCounterparts(Surveyed):
    """Gradients of what stands beside other values in forward, of all that a call takes in or all that it gives out."""

    name: ClassVar[str] = "other counterpart"

    def __init__(self, evidence: Evidence) -> None:
        super().__init__(evidence)
        for node in evidence.nodes:
            if not node.is_backward or node.is_parameter_gradient or max(node.ratio_in, node.ratio_out) <= 1:
                continue
            for state, gradient in (("input", "output"), ("output", "input")):
                if _stand_beside_others(node.context, state):
                    for row in node.rows(gradient):
                        if error_ratio(row) > 1:
                            self.let_pass(row, node)


def _stand_beside_others(forward: Sequence[Node], state: str) -> bool:
    """Whether all values of this state were compared with other values than their own."""
    compared = [row for node in forward for row in node.rows(state) if row.deviation is not None]
    return bool(compared) and all(map(_is_beside_another, compared))


def _is_beside_another(row: Row) -> bool:
    explained = row.explained
    return (row.deviation or 0.0) > BESIDE_ANOTHER and explained is not None and explained.by in _BESIDE_OTHERS
