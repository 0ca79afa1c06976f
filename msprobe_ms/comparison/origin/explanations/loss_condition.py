"""How far a loss may be off because of what it is a function of.

To first order a loss changes by the scalar product of the gradient g that reaches a call with the error of what that
call gave out. Where n elements of root mean square y are off by a part d of it, each for itself, that adds up to about
‖g‖ · d · y; a part s that all of them share, which their Norm and Mean show, to at most ‖g‖ · s · y · sqrt(n). Held
against a loss near zero, a logarithm of nearly 1 or a square of what nearly vanishes, this is many times the loss's own
rounding. The gradients do not depend on the loss's value, so nothing that follows inherits any of it. An output counts
as off by its tolerance where nothing tells of all its elements how far they are off.

The gradient has the same condition. A loss L that is smallest where it vanishes is about h e² / 2 of an error e, and
its gradient h e: the error δ of an output changes the gradient by h δ, which is ‖g‖ · ‖δ‖ / 2L of it. So it is for
squares, and for the logarithm of a probability near 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.model import Allowance, Row
from msprobe_ms.comparison.origin.estimates import ESTIMATE
from msprobe_ms.comparison.origin.nodes import Node, is_of_all_elements
from msprobe_ms.comparison.origin.propagation import GAIN, whole_difference
from msprobe_ms.comparison.origin.protocols import Phase
from msprobe_ms.comparison.statistics import element_count, magnitude, root_mean_square, square
from msprobe_ms.dump.names import BACKWARD, FORWARD

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.walk import Walk


class LossCondition:
    """Losses, and gradients that arrive, as far apart as rounding in the outputs before the loss explains.

    Any loss, where nothing before it was compared.
    """

    name: ClassVar[str] = "condition of the loss"
    phase: ClassVar[Phase] = Phase.WALK

    def __init__(self, evidence: Evidence) -> None:
        nodes = evidence.nodes
        goldens = (row.golden for node in nodes if node.is_loss for row in node.rows("debug"))
        sizes = [magnitude(golden.norm) for golden in goldens if golden is not None]
        calls = [node for node in nodes if _direction(node) == FORWARD] if sizes else []
        self._first = calls[0].order if calls else math.inf
        self._error = _error_of_losses(nodes, calls) if sizes else 0.0
        self._smallest = min(sizes, default=0.0)

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """The error that the outputs lead to, relative to the loss; of a gradient, that of what it arrives at."""
        if row.golden is None or row.held_to is None:
            return None
        if node.is_backward and row.state == "input" and self._smallest and node.context:
            apart = max(map(_distance, node.context[0].rows("output")), default=0.0)
            return Allowance(self.name, row.held_to + magnitude(row.golden.norm) * apart / (2 * self._smallest))
        if not node.is_loss:
            return None
        if node.order < self._first:
            return Allowance(self.name)
        size = magnitude(row.golden.norm)
        return Allowance(self.name, row.held_to + self._error / size) if size else None


def _error_of_losses(nodes: Sequence[Node], calls: Sequence[Node]) -> float:
    """The largest error of a loss that rounding in the outputs of any call explains.

    Without gradients that of the last call, as of a mean over its outputs: none of these reaches it more than whole.
    """
    backward = [node for node in nodes if _direction(node) == BACKWARD and node.context]
    arriving = [(node.context[0], _norm(node.rows("input"))) for node in backward]
    if not arriving:
        arriving = [(node, 1.0) for node in calls[-1:]]
    return max((slope * _error(row) for node, slope in arriving for row in node.rows("output")), default=0.0)


def _error(row: Row) -> float:
    """The error of an output that counts for each element of a gradient."""
    golden, deviation = row.golden, row.deviation
    if golden is None or row.target is None or deviation is None or row.held_to is None or math.isinf(deviation):
        return 0.0
    size = root_mean_square(golden) if parse_dtype(golden.dtype).epsilon else None
    if not size:
        return 0.0
    shared = whole_difference(row) * math.sqrt(max(1, element_count(golden)))
    return size * GAIN * _apart(row) + size * shared


def _apart(row: Row) -> float:
    """The part by which an output is off, twice what its elements show: sketches estimate it."""
    deviation = row.deviation or 0.0
    return ESTIMATE * deviation if is_of_all_elements(row) else max(deviation, row.held_to or 0.0)


def _distance(row: Row) -> float:
    """The norm of the error of an output; 0 where it cannot be told."""
    size = magnitude(row.golden.norm) if row.golden is not None else 0.0
    return size * _apart(row) if math.isfinite(row.deviation or 0.0) else 0.0


def _norm(rows: Iterable[Row]) -> float:
    """The norm of all the golden's gradients in these rows together."""
    return math.sqrt(sum(square(magnitude(row.golden.norm)) for row in rows if row.golden is not None))


def _direction(node: Node) -> str:
    return node.parsed.direction if node.parsed is not None else ""
