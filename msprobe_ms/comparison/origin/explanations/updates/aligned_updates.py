"""What a linear layer makes of updates that set its weight apart: they lie along what it takes in, and add up.

The gradient of a weight W is a sum of products with what the layer takes in, x. So what updates add to W lies along x,
and its products with x do not cancel as those of rounding do: y = Wx changes by ‖ΔW‖ · ‖x‖ at most, and was seen
to change by nearly that. Held against y that is more than ‖ΔW‖ is of ‖W‖, the more the wider the layer is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.layer_kinds import Kind
from msprobe_ms.comparison.model import Allowance, Row
from msprobe_ms.comparison.origin.conditions import condition, condition_along
from msprobe_ms.comparison.origin.estimates import ESTIMATE_OF_BOTH
from msprobe_ms.comparison.origin.nodes import is_measured
from msprobe_ms.comparison.origin.propagation import MARGIN
from msprobe_ms.comparison.origin.protocols import Phase
from msprobe_ms.comparison.statistics import root_mean_square
from msprobe_ms.dump.model import Item

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.walk import Walk


class AlignedUpdates:
    """Results of linear layers in forward, as far apart as what updates added to the weight explains."""

    name: ClassVar[str] = "aligned updates"
    phase: ClassVar[Phase] = Phase.WALK

    def __init__(self, evidence: Evidence) -> None:
        self._set_apart = evidence.set_apart_by_updates

    def allows(self, row: Row, node: Node, walk: Walk) -> Allowance | None:
        """(‖ΔW‖ · ‖x‖ + ‖Δb‖) / ‖y‖, some times where sketches estimate both, beside the error of the input.

        Nothing of a weight that is further apart than its updates explain.
        """
        if row.state != "output" or row.golden is None or row.held_to is None or node.kind is not Kind.LINEAR:
            return None
        known, taken = condition(node), next(node.rows("input"), None)
        if known is None or taken is None or taken.golden is None:
            return None
        weight = next((each for each in self._weights(node) if each.golden and _is_matrix(each)), None)
        if weight is None or weight.golden is None:
            return None
        along = condition_along(weight.golden, taken.golden, row.golden)
        if along is None:
            return None
        came_in = MARGIN * known * (taken.deviation or 0.0)
        share = 1.0 if is_measured(row) else ESTIMATE_OF_BOTH
        added = along * (weight.deviation or 0.0) + self._added_by_bias(row.golden, node)
        return Allowance(self.name, row.held_to + share * added + came_in)

    def _added_by_bias(self, given: Item, node: Node) -> float:
        """‖Δb‖ / ‖y‖, where b is added to each row of y."""
        size, bias = root_mean_square(given), next((each for each in self._weights(node) if _is_vector(each)), None)
        own = root_mean_square(bias.golden) if bias is not None and bias.golden is not None else None
        return own / size * (bias.deviation or 0.0) if bias is not None and own and size else 0.0

    def _weights(self, node: Node) -> Iterator[Row]:
        """What its updates set apart as far as it is."""
        for row in node.rows("parameters", "input"):
            up_to = self._set_apart(row)
            if up_to is not None and (row.deviation or 0.0) <= up_to:
                yield row


def _is_vector(row: Row) -> bool:
    shape = row.golden.shape if row.golden is not None else None
    return isinstance(shape, tuple) and len(shape) == 1


def _is_matrix(row: Row) -> bool:
    shape = row.golden.shape if row.golden is not None else None
    return isinstance(shape, tuple) and len(shape) > 1
