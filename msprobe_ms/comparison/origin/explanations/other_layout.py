"""Weights that the two sides hold in other layouts: ``x @ w`` beside ``x @ w.T``, which a square matrix hides.

Of another shape the order of elements is not compared. Of the same shape it is, and each element stands beside another.
That the layout is all that differs shows in what comes out: a layer that gives out what it should of the same values
has them in its own order. Its gradient is in that order as well, and so may be one whose weight was not compared: of it
nothing but the values themselves can be held against the other side's. A weight that was next to nothing before its
updates is as far apart as these, whose noise may leave statistics alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.measuring.deviation import four_statistics_deviation
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.origin.protocols import Surveyed
from msprobe_ms.comparison.origin.updates import Place, place_of
from msprobe_ms.comparison.statistics import without_ones
from msprobe_ms.dump.names import PARAMETERS_GRAD

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node

#: Times that statistics and results may be further apart than a parameter that updates set apart.
_DRIFT = 2.0
#: The least deviation of elements beside others: of two orders without a pattern 1.4, but for a common mean.
_FAR = 0.3


class OtherLayout(Surveyed):
    """Weights of layers that come out right, and gradients of these and of weights that were not compared."""

    name: ClassVar[str] = "other layout"

    def __init__(self, evidence: Evidence) -> None:
        super().__init__(evidence)
        differing = [found for found in _differing(evidence.nodes) if not _is_set_apart(found[0], evidence)]
        if not differing:
            return
        drift = _DRIFT * evidence.drift
        calls: dict[str, list[Node]] = defaultdict(list)
        compared: set[Place] = set()
        for node in evidence.nodes:
            if node.is_module_call:
                calls[node.module].append(node)
                compared.update(place_of(row) for row in node.rows("parameters") if row.deviation is not None)
        for row, node in differing:
            right = (call.comes_out_right_but_for(drift) for call in calls[node.module])
            if row.state == "parameters" and _holds_the_same_values(row, drift) and all(right):
                self.let_pass(row, node)
                compared.discard(place_of(row))
        for row, node in differing:
            drift = _DRIFT * max((each.deviation for each in node.context), default=0.0)
            of_gradient = row.state == "parameters_grad" and _holds_the_same_values(row, drift)
            if of_gradient and _place_of_gradient(row) not in compared:
                self.let_pass(row, node)


def _differing(nodes: Sequence[Node]) -> Iterator[tuple[Row, Node]]:
    """Matrices whose elements stand beside others than their counterparts."""
    for node in nodes:
        if node.ratio_parameters > 1 or (node.is_parameter_gradient and node.ratio_out > 1):
            for row in node.rows("parameters", "parameters_grad"):
                if row.differs and (row.deviation or 0.0) > _FAR and _is_matrix(row):
                    yield row, node


def _is_set_apart(row: Row, evidence: Evidence) -> bool:
    """Whether the updates of a parameter explain how far apart it is."""
    up_to = evidence.set_apart_by_updates(row) if row.state == "parameters" else None
    return up_to is not None and (row.deviation or 0.0) <= up_to


def _is_matrix(row: Row) -> bool:
    """Whether both sides are tensors of several axes, of one shape."""
    shapes = [without_ones(item.shape) for item in (row.target, row.golden) if item is not None]
    return len(shapes) == 2 and shapes[0] == shapes[1] and isinstance(shapes[0], tuple) and len(shapes[0]) > 1


def _holds_the_same_values(row: Row, drift: float) -> bool:
    """Whether Max, Min, Mean and Norm agree, where elements do not."""
    target, golden = row.target, row.golden
    if target is None or golden is None or target.maximum == target.minimum:
        return False
    apart = four_statistics_deviation(target, golden)
    return apart is not None and apart <= max(row.tolerance or 0.0, drift)


def _place_of_gradient(row: Row) -> Place:
    """Whose gradient a row is, as ``place_of`` tells whose parameter one is."""
    item = row.target
    return (item.entry.partition(f".{PARAMETERS_GRAD}.")[0], item.path) if item is not None else ("", ())
