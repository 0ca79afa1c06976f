"""A call that computes in another width of float since the first step: neither rounding nor updates change that.

In mixed precision both sides may hold another width from the first step on, which says nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msprobe_ms.comparison.model import Origin, OriginKind, Row
from msprobe_ms.comparison.origin.causes.other_precision import hold_several_widths, is_of_two_widths, were_of_one_width
from msprobe_ms.comparison.origin.sentences import describe_difference, origin_at
from msprobe_ms.dump.model import Dump
from msprobe_ms.support.translation import tr, tr_count

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node
    from msprobe_ms.comparison.origin.walk import Walk


class ChangedPrecision:
    """Parameters and results of forward calls that both sides held in one width in the first step."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence

    def find(self, walk: Walk, found: Sequence[tuple[float, Origin]]) -> list[tuple[float, Origin]]:
        """The first call that changed; that others did as well is a detail of it."""
        nodes = self._evidence.nodes
        first = self._evidence.first_step if hold_several_widths(nodes) else None
        changed = [] if first is None else list(_changed(nodes, *first))
        if not changed or not walk.is_untold(changed[0][0]):
            return []
        (node, row), *others = changed
        return [(node.order, _origin(row, len({each.module for each, _ in others} - {node.module})))]


def _changed(nodes: Sequence[Node], target: Dump, golden: Dump) -> Iterator[tuple[Node, Row]]:
    for node in nodes:
        if node.is_backward or node.is_save or node.is_update:
            continue
        for row in node.rows("parameters", "output"):
            if is_of_two_widths(row) and were_of_one_width(row, target, golden):
                yield node, row
                break


def _origin(row: Row, others: int) -> Origin:
    assert row.target is not None and row.golden is not None
    reason = tr(
        "its {suffix} is {dtype} against {other_dtype}, which was one dtype in the first step: look for a cast since",
        suffix=row.target.suffix,
        dtype=row.target.dtype,
        other_dtype=row.golden.dtype,
    )
    more = tr_count("the same in 1 other call", "the same in {count} other calls", count=others) if others else ""
    return origin_at(row, reason, [describe_difference(row), more], OriginKind.PRECISION)
