"""What comes out right was computed right, of a whole step: where the gradients of all parameters agree and so do the
results of the last module, what lies far apart before them stands beside another value than its counterpart.

An error that large would reach them; the last results may be a few tolerances apart, as those of many layers are. In
backward, parameters' gradients may be apart by a two hundredth of it, as where a maximum is at another place: that is
judged by itself. In forward they may not: what attention makes of wrong queries hardly differs while its scores are
small. A small error, as a narrower float makes, may fade on the way and is judged as any other; so are parameters,
which may differ without any use in this step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.model import Pair
from msprobe_ms.comparison.origin.nodes import Node, error_ratio
from msprobe_ms.comparison.origin.propagation import BESIDE_ANOTHER, DRIFT
from msprobe_ms.comparison.origin.protocols import Surveyed
from msprobe_ms.dump.names import PARAMETERS_GRAD

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence

#: The least share of all gradients of parameters that must have been compared: for values of forward, which may reach
#: few of them, and of backward, which reach most.
_NEARLY_ALL, _MOST = 0.9, 2 / 3
#: The part of it that reaches any gradient at least, had it an effect: in backward all are made of those before them.
_REACHES = 0.005
#: Times that gradients and results may be further apart than a parameter that updates set apart.
_DRIFT = 2.0


class AgreeingStep(Surveyed):
    """Inputs and results of calls, forward and backward, in a step whose gradients and last results agree."""

    name: ClassVar[str] = "step agrees"

    def __init__(self, evidence: Evidence) -> None:
        super().__init__(evidence)
        differing = [node for node in evidence.nodes if (node.ratio_in > 1 or node.ratio_out > 1) and not node.is_save]
        if not differing:
            return
        last = next((node for node in reversed(evidence.nodes) if _is_outermost(node)), None)
        drift = min(_DRIFT * evidence.drift, BESIDE_ANOTHER / 10)
        if last is None or not _comes_out_right(last, drift):
            return
        share, apart = _gradients_compared(evidence.pairs, drift)
        forward, backward = share > _NEARLY_ALL and not apart, share > _MOST
        for node in differing:
            is_told_of = backward if node.is_backward else forward and node.order <= last.order
            if is_told_of:
                rows = [row for row in node.rows("input", "output") if error_ratio(row) > 1]
                # Beside another call than its counterpart all of a call's values stand beside others.
                if any(
                    _REACHES * min(row.deviation or 0.0, 1.0) > max(apart, _REACHES * BESIDE_ANOTHER) for row in rows
                ):
                    for row in rows:
                        self.let_pass(row, node)


def _is_outermost(node: Node) -> bool:
    return node.is_module_call and node.parent is None


def _comes_out_right(last: Node, drift: float) -> bool:
    """Whether the last results agree, but for a drift: of updates, or as layers one behind the other round."""
    tolerance = max((row.tolerance or 0.0 for row in last.rows("output")), default=0.0)
    return last.comes_out_right_but_for(max(drift, DRIFT * tolerance))


def _gradients_compared(pairs: Sequence[Pair], drift: float) -> tuple[float, float]:
    """The share of parameters' gradients that were compared, and the largest deviation of one that is no drift."""
    compared, alone, apart = 0, 0, 0.0
    for pair in pairs:
        entry = pair.target or pair.golden
        if entry is None or entry.parsed is None or entry.parsed.direction != PARAMETERS_GRAD:
            continue
        for row in pair.rows:
            if error_ratio(row) > 1 and (row.deviation or 0.0) > drift:
                apart = max(apart, row.deviation or 0.0)
            compared += row.deviation is not None
            alone += row.deviation is None
    return compared / max(1, compared + alone), apart
