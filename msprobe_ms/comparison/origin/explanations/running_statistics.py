"""Running statistics are results: what a normalisation takes in goes into them before they are recorded.

A running mean m takes in a share of the mean of the batch x, so that an error of a part d of x changes it by at most
d · rms(x) / rms(m) of itself: far more than d where x spreads far around a mean near zero. The running variance v takes
in a share of the variance of x, and changes by at most 2 · d · rms(x)² / rms(v).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.model import Allowance, Row
from msprobe_ms.comparison.origin.estimates import ESTIMATE
from msprobe_ms.comparison.origin.protocols import Phase
from msprobe_ms.comparison.pairing.coverage import RUNNING_STATISTICS
from msprobe_ms.comparison.statistics import root_mean_square, square

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.walk import Walk


class RunningStatistics:
    """Running statistics as far apart as what their call takes in explains."""

    name: ClassVar[str] = "running statistics"
    phase: ClassVar[Phase] = Phase.WALK

    def __init__(self, evidence: Evidence) -> None:
        """Nothing need be read beforehand."""

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """What the deviation of the call's first input amounts to in this statistic."""
        if row.state != "parameters" or row.held_to is None:
            return None
        own, taken = row.golden, next(node.rows("input"), None)
        if own is None or not own.path or own.path[-1] not in RUNNING_STATISTICS:
            return None
        if taken is None or taken.golden is None or taken.held_to is None:
            return None
        size, spread = root_mean_square(own), root_mean_square(taken.golden)
        if not size or spread is None:
            return None
        part = ESTIMATE * max(taken.deviation or 0.0, taken.held_to)
        is_mean = "mean" in own.path[-1]
        change = part * spread / size if is_mean else 2 * part * square(spread) / size
        return Allowance(self.name, row.held_to + change)
