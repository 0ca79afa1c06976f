"""A single layer that gives out more error than layers of its kind add, though less than a net may."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.origin.causes.wrong_result import WrongResult
from msprobe_ms.comparison.origin.nodes import Node
from msprobe_ms.comparison.origin.propagation import DRIFT, may_exceed, single_layer_excess
from msprobe_ms.comparison.origin.protocols import Found

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.walk import Walk


class SmallExcess:
    """A layer whose setting differs a little: an epsilon, an approximation. It does so from the first step on."""

    def __init__(self, evidence: Evidence) -> None:
        self._result, self._updated = WrongResult(evidence), evidence.updated
        self._is_later = evidence.is_later

    def find(self, node: Node, unexplained: Sequence[Row], walk: Walk) -> Found | None:
        """The output that is further apart than this layer explains; once for a module.

        Only before anything that may reach the layer differs by more than a drift.
        """
        if self._is_later or not may_exceed(node) or not walk.may_begin_at(node):
            return None
        seen = walk.reached.hidden_in(node)
        excess = single_layer_excess(node, seen, updated=self._updated) if seen <= DRIFT else None
        if excess is None:
            return None
        row, explained = excess
        walk.hold(row, node, explained)
        return Found(node, self._result.origin(node, walk))
