"""Indices of a largest element that nothing takes in: of elements that are nearly equal rounding chooses one.

The function gives its indices out beside its values, or a framework does so unasked (``max`` over an axis). As many
indices may be others as ReLU has switches (see `relu_switching`): of n elements that differ by δ relative to their size
about n δ. Indices that later calls take in are left to be told, as everything behind them differs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.fingerprints import Fingerprint, fingerprint
from msprobe_ms.comparison.model import Allowance, Effect, Row
from msprobe_ms.comparison.origin.explanations.relu_switching import allowed_by_switches
from msprobe_ms.comparison.origin.nodes import Node, is_of_floats, is_of_whole_numbers
from msprobe_ms.comparison.origin.protocols import Phase
from msprobe_ms.comparison.statistics import element_count

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.walk import Walk

_CHOOSES = re.compile(r"(arg|cum)?(max|min)(imum)?(with_?value)?|(arg)?sort|topk|median|kthvalue|\w*max_?pool\w*")


class UnusedIndices:
    """Whole numbers beside the floats that a choosing function gives out, which no later call takes in."""

    name: ClassVar[str] = "index without use"
    phase: ClassVar[Phase] = Phase.WALK

    def __init__(self, evidence: Evidence) -> None:
        self._nodes = evidence.nodes
        self._used: set[Fingerprint | None] | None = None

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """As much as the elements explain that may have changed places, given how far apart they are."""
        if node.is_backward or node.is_module or row.state != "output":
            return None
        if row.golden is None or not is_of_whole_numbers(row):
            return None
        if not node.known("chooses among floats", _chooses) or self._is_used(row):
            return None
        switched = node.known("elements that changed places", _switched)
        return Allowance(self.name, allowed_by_switches(switched, element_count(row.golden)), effect=Effect.NO_ERROR)

    def _is_used(self, row: Row) -> bool:
        if self._used is None:  # asked of few steps
            taken = (each for node in self._nodes for each in node.rows("input") if is_of_whole_numbers(each))
            self._used = {fingerprint(each) for each in taken}
        return fingerprint(row) in self._used


def _chooses(node: Node) -> bool:
    """Whether it is a function that chooses elements and gives these out as well."""
    name = node.parsed.name.rpartition(".")[2] if node.parsed is not None else ""
    return bool(_CHOOSES.fullmatch(name.lower())) and any(map(is_of_floats, node.rows("output")))


def _switched(node: Node) -> float:
    """How many of the elements that it chooses among may have changed places."""
    taken = [each for each in node.rows("input") if is_of_floats(each) and each.deviation]
    return max((element_count(each.golden) * (each.deviation or 0.0) for each in taken if each.golden), default=0.0)
