"""A call paired with another than its counterpart: what it takes in and gives out stands beside other values.

That shows in forward, where all of it is far apart and yet the results around it agree. The same two calls stand beside
each other in backward, where little need agree to show it: once parameters were updated, no gradients of a step do.
What an error there makes of the gradients shows in the calls around it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.origin.explanations.agreeing_results import AgreeingResults
from msprobe_ms.comparison.origin.explanations.agreeing_step import AgreeingStep
from msprobe_ms.comparison.origin.nodes import Node, error_ratio
from msprobe_ms.comparison.origin.protocols import Surveyed

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence

#: The least deviation of what stands beside another value: a layer computed in bfloat16 is 0.01 apart at most.
_FAR = 0.05
#: What says of values that they stand beside others.
_BESIDE_OTHERS = (AgreeingResults.name, AgreeingStep.name)


class OtherCounterparts(Surveyed):
    """Gradients that calls take in and hand on whose inputs and results all stand beside others in forward."""

    name: ClassVar[str] = "other counterpart"

    def __init__(self, evidence: Evidence) -> None:
        super().__init__(evidence)
        for node in evidence.nodes:
            if not node.is_backward or node.is_parameter_gradient or max(node.ratio_in, node.ratio_out) <= 1:
                continue
            if node.context and all(map(_stands_beside_another, node.context)):
                for row in node.rows("input", "output"):
                    if error_ratio(row) > 1:
                        self.let_pass(row, node)


def _stands_beside_another(node: Node) -> bool:
    """Whether all that a call takes in and gives out was compared with other values than its own."""
    compared = [row for row in node.rows("input", "output") if row.deviation is not None]
    return {row.state for row in compared} == {"input", "output"} and all(map(_is_beside_another, compared))


def _is_beside_another(row: Row) -> bool:
    explained = row.explained
    return (row.deviation or 0.0) > _FAR and explained is not None and explained.by in _BESIDE_OTHERS
