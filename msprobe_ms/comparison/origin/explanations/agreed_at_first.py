"""What agreed in the first step is computed by the same code later: from then on it is training that sets it apart.

A fault of code or settings shows in the first step. What can be wrong later without having been wrong then are the
updates, the data and what a module keeps between steps: parameters, buffers and what the model is given are not
explained here, nor are gradients of parameters, which a step may add to those of the step before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.fingerprints import fingerprint
from msprobe_ms.comparison.measuring.deviation import statistic_deviation
from msprobe_ms.comparison.model import Allowance, Row
from msprobe_ms.comparison.origin.earlier_steps import same_item
from msprobe_ms.comparison.origin.nodes import Node, error_ratio
from msprobe_ms.comparison.origin.propagation import DRIFT
from msprobe_ms.comparison.origin.protocols import Phase
from msprobe_ms.comparison.statistics import have_sketches

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.search import Walk

#: How far apart a value may be that agreed in the first step: five times what a layer in bfloat16 is.
_FAR = 0.05


class AgreedAtFirst:
    """Inputs and results of calls that agreed in the first recorded step, once parameters were updated."""

    name: ClassVar[str] = "agreed in the first step"
    phase: ClassVar[Phase] = Phase.WALK

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._allowance = Allowance(self.name, _FAR)

    @cached_property
    def _same_data(self) -> bool:
        return all(error_ratio(row) <= DRIFT for row in _data(self._evidence.nodes))

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """Up to a twentieth, of what sketches showed to agree; nothing where the model is given other data."""
        if row.state not in ("input", "output") or (first := self._evidence.first_step) is None or not self._same_data:
            return None
        if row.target is None or row.golden is None:
            return None
        target, golden = (same_item(dump, item) for dump, item in zip(first, (row.target, row.golden), strict=True))
        if target is None or golden is None or not have_sketches(target, golden):
            return None
        deviation = statistic_deviation(target, golden)
        return self._allowance if deviation is not None and deviation <= (row.tolerance or 0.0) else None


def _data(nodes: Sequence[Node]) -> Iterator[Row]:
    """What outermost modules are given and none of them made."""
    outermost = [node for node in nodes if node.is_module_call and node.parent is None]
    made = {fingerprint(row) for node in outermost for row in node.rows("output")}
    return (row for node in outermost for row in node.rows("input") if fingerprint(row) not in made)
