"""Gradients that agreed where a call gave them out, and are held against another size where the next takes them in.

A call's gradients are held against the largest of them (`GradientFloors`): that of a divisor sums what is left
of the dividend's. Where the same tensor is taken in alone, that size is not at hand.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.fingerprints import Fingerprints, fingerprints
from msprobe_ms.comparison.model import Allowance, Row
from msprobe_ms.comparison.origin.nodes import error_ratio
from msprobe_ms.comparison.origin.propagation import GAIN_IN_DOUBT
from msprobe_ms.comparison.origin.protocols import Phase

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.walk import Walk


class AgreedWhereMade:
    """What a call takes in backward that another gave out in agreement, the same tensor on both sides."""

    name: ClassVar[str] = "agreed where made"
    phase: ClassVar[Phase] = Phase.WALK

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence

    @cached_property
    def _made(self) -> dict[Fingerprints, int]:
        """The gradients that calls gave out in agreement → the first of these calls."""
        made: dict[Fingerprints, int] = {}
        for node in self._evidence.nodes:
            if node.is_backward and not node.is_parameter_gradient:
                for row in node.rows("output"):
                    if row.deviation is not None and error_ratio(row) <= 1 and not row.misrecorded:
                        made.setdefault(fingerprints(row), node.order)
        return made

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """As much as a call may multiply its error; an error that hides behind larger gradients is beyond that."""
        if row.state != "input" or not node.is_backward or row.held_to is None or error_ratio(row) > GAIN_IN_DOUBT:
            return None
        both = fingerprints(row)
        if None in both or self._made.get(both, node.order) >= node.order:
            return None
        return walk.no_more_than_amplified(Allowance(self.name, GAIN_IN_DOUBT * row.held_to), row, node)
