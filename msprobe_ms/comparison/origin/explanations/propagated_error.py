"""Error of what a call takes in, as it comes out: multiplied by the condition of what is computed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.model import Allowance, Row
from msprobe_ms.comparison.origin.nodes import Node
from msprobe_ms.comparison.origin.propagation import DRIFT, GAIN, GAIN_IN_DOUBT, explained_ratio
from msprobe_ms.comparison.origin.protocols import Phase
from msprobe_ms.comparison.origin.small_gradients import explained_in_proportion

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.walk import Walk


class PropagatedError:
    """A result as far apart as its inputs explain; an input as far apart as what was computed so far explains."""

    name: ClassVar[str] = "propagated error"
    phase: ClassVar[Phase] = Phase.WALK

    def __init__(self, evidence: Evidence) -> None:
        self._updated = evidence.updated

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """Some times the error that came in; of parameters nothing."""
        if row.state == "parameters" or row.held_to is None:
            return None
        # What differs by updates is noise of another kind than rounding: more of it may hide than statistics show.
        if row.state == "input":
            before = max(walk.reached.before(node), walk.reached.noise_around(node))
            if self._updated or before > 1:
                ratio = GAIN_IN_DOUBT * before
            else:  # code that was not recorded rounds as calls do
                ratio = walk.reached.negligible(node) + GAIN * before
        else:
            doubtful = self._updated or walk.reached.before(node) > DRIFT or node.ratio_before > 1
            ratio = explained_ratio(node, walk.reached.negligible(node), doubtful=doubtful)
            if node.takes_in_fills:  # beside which statistics do not show how far the others drifted
                ratio = max(ratio, GAIN * walk.reached.largest)
        up_to = ratio * row.held_to if math.isfinite(ratio) else ratio
        if row.state == "output" and (row.deviation or 0.0) > up_to:
            up_to = max(up_to, explained_in_proportion(row, node))
        allowance = Allowance(self.name, up_to)
        return walk.no_more_than_amplified(allowance, row, node)
