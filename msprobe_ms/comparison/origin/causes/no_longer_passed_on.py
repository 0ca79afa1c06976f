"""A module that gave out the result of a call inside it unchanged in the first step, and now gives out another value.

Whatever a training makes of the values, code that passes a tensor on passes it on in every step. How far trainings have
drifted apart does not matter for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msprobe_ms.comparison.fingerprints import fingerprint_of
from msprobe_ms.comparison.model import Origin, Row
from msprobe_ms.comparison.origin.earlier_steps import same_item
from msprobe_ms.comparison.origin.sentences import describe_difference, origin_at
from msprobe_ms.dump.model import Dump, Item
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.walk import Walk


class NoLongerPassedOn:
    """Results of modules that were those of a call inside on both sides, and are on one side alone."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence

    def find(self, walk: Walk, found: Sequence[tuple[float, Origin]]) -> list[tuple[float, Origin]]:
        """The first module that is such, unless it is told already."""
        if (first := self._evidence.first_step) is None:
            return []
        for node in self._evidence.nodes:
            if node.is_module_call and node.children and node.ratio_out > 1:
                for row, inner, side in _changed(node, first):
                    return [(node.order, _origin(row, inner, side))] if walk.is_untold(node) else []
        return []


def _changed(node: Node, first: tuple[Dump, Dump]) -> Iterator[tuple[Row, Row, str]]:
    """Results, those of a call inside that they were, and the side on which they are these no more.

    Not those that both sides still pass on from another call: one that adds a parameter, which was zero at first, gave
    out what it took in.
    """
    for row in node.rows("output"):
        if not row.differs or row.target is None or row.golden is None:
            continue
        inside = [
            (inner, [_are_one(*both) for both in ((row.target, inner.target), (row.golden, inner.golden))])
            for child in node.children
            for inner in child.rows("output")
        ]
        if any(all(now) for _, now in inside):
            continue
        for inner, now in inside:
            if now.count(True) == 1 and _were_one(row, inner, first):
                yield row, inner, "golden" if now[0] else "target"


def _were_one(row: Row, inner: Row, first: tuple[Dump, Dump]) -> bool:
    target, golden = first
    pairs = ((target, row.target, inner.target), (golden, row.golden, inner.golden))
    return all(
        outer is not None and other is not None and _are_one(same_item(dump, outer), same_item(dump, other))
        for dump, outer, other in pairs
    )


def _are_one(outer: Item | None, inner: Item | None) -> bool:
    """Whether two records are of one tensor."""
    if outer is None or inner is None or (known := fingerprint_of(outer)) is None:
        return False
    return known == fingerprint_of(inner) and outer.sketch == inner.sketch


def _origin(row: Row, inner: Row, side: str) -> Origin:
    assert inner.target is not None
    reason = tr(
        "the {side} no longer returns what {name} gives it, as both sides did in the first step: look at its code",
        side=tr(side),
        name=inner.target.name,
    )
    return origin_at(row, reason, [describe_difference(row)])
