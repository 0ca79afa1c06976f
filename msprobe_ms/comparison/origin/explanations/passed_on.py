"""What passes through does not count: a container without code of its own, as a sequence of layers.

Whatever differs in what the calls inside take in was given to the container, or given out by another call inside; and
what the container gives out is the result of one of them, which is judged there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.fingerprints import Fingerprints, fingerprints
from msprobe_ms.comparison.model import Allowance, Row
from msprobe_ms.comparison.origin.nodes import error_ratio
from msprobe_ms.comparison.origin.protocols import Phase

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.walk import Walk


class PassedOn:
    """A result of such a module, where that of the call inside is explained."""

    name: ClassVar[str] = "result of a call inside"
    phase: ClassVar[Phase] = Phase.WALK

    def __init__(self, evidence: Evidence) -> None:
        """Nothing is read beforehand."""

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """As much as the call inside was allowed."""
        if row.state != "output" or not node.is_module_call or not node.children:
            return None
        inner = node.known("results inside", _results_inside).get(fingerprints(row))
        explained = inner.explained if inner is not None else None
        if explained is None or (row.deviation or 0.0) > explained.up_to:
            return None
        return explained._replace(by=self.name)


def _results_inside(node: Node) -> dict[Fingerprints, Row]:
    """The results of the calls inside, by what tells them on both sides; none where code between them may be at work.

    Statistics that are equal on both sides do not tell whether code in between changed the order of elements.
    """
    known = {fingerprints(row) for row in node.rows("input")}
    results: dict[Fingerprints, Row] = {}
    for child in node.children:
        for row in child.rows("input"):
            if error_ratio(row) > 1 and ((both := fingerprints(row)) not in known or _tell_nothing(both)):
                return {}
        given = {fingerprints(row): row for row in child.rows("output")}
        results.update(given)
        known.update(given)
    return {key: row for key, row in results.items() if not _tell_nothing(key)}


def _tell_nothing(both: Fingerprints) -> bool:
    return None in both or both[0] == both[1]
