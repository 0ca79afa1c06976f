"""What agreed in the first step is computed by the same code later: it differs more as what it is computed from does.

How much more is what `amplification` tells. Where nothing tells what a value is computed from, it may be as far apart
as trainings are that drift. Not explained here are parameters, buffers and what the model is given, nor gradients of
parameters, which a step may add to those of the step before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.fingerprints import fingerprint
from msprobe_ms.comparison.model import Allowance, Row
from msprobe_ms.comparison.origin.nodes import Node, error_ratio
from msprobe_ms.comparison.origin.propagation import DRIFT, GAIN
from msprobe_ms.comparison.origin.protocols import Phase

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.walk import Walk

#: How far apart a value may be that agreed in the first step: five times what a layer in bfloat16 is.
_FAR = 0.05


class AgreedAtFirst:
    """Inputs and results of calls that agreed in the first recorded step, once parameters were updated."""

    name: ClassVar[str] = "growth since the first step"
    phase: ClassVar[Phase] = Phase.WALK

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence

    @cached_property
    def _same_data(self) -> bool:
        return all(error_ratio(row) <= max(DRIFT, up_to) for row, up_to in _data(self._evidence))

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """As much more as what it is computed from differs now; a twentieth where nothing tells, of the same data."""
        if row.state not in ("input", "output") or not walk.agreed_at_first(row) or not self._same_data:
            return None
        bound = walk.amplified(row, node)
        return Allowance(self.name, _FAR if bound is None else bound)


def _data(evidence: Evidence) -> Iterator[tuple[Row, float]]:
    """What outermost modules are given and none of them made; and the error ratio that what they made explains of it.

    Code between them makes one's input of another's result, as a mean over places or one of them, and it need not be
    recorded: what is given after a result may be as far apart as a call makes it. Data is further apart. What is given
    after a call without a counterpart may be that call's result.
    """
    outermost = [node for node in evidence.nodes if node.is_module_call and node.parent is None]
    made = {fingerprint(row) for node in outermost for row in node.rows("output")}
    given = 0.0
    for node in outermost:
        if node.ratio_in > 1 and not evidence.unrecorded.stands_before(node.pair):
            yield from ((row, GAIN * given) for row in node.rows("input") if fingerprint(row) not in made)
        given = max(given, node.ratio_out if math.isfinite(node.ratio_out) else 0.0)
