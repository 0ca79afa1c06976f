"""Tensors that a call gives out on one side alone, and that no later call takes in there.

Implementations of one layer differ in what they hand out beside their result: attention computed step by step gives its
weights, a fused kernel gives None in their place. A tensor that is needed is taken in by a later call, or shows in the
loss and in gradients.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.fingerprints import Fingerprint, fingerprint
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.origin.protocols import Surveyed
from msprobe_ms.comparison.terms import GOLDEN, TARGET, Side

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence
    from msprobe_ms.comparison.origin.nodes import Node


class UnusedResults(Surveyed):
    """Tensors beside None among the results of calls within others: what the network gives out the script may use."""

    name: ClassVar[str] = "result without use"

    def __init__(self, evidence: Evidence) -> None:
        super().__init__(evidence)
        nodes = evidence.nodes
        given = list(_given_by_one_side(nodes))
        if not given:
            return
        used = _last_uses(nodes, {side for _, _, side, _ in given})
        for node, row, side, mark in given:
            if used.get((side, mark), -1) <= node.order:
                self.let_pass(row, node)


def _given_by_one_side(nodes: Sequence[Node]) -> Iterator[tuple[Node, Row, Side, Fingerprint]]:
    """The forward results that one side has as a tensor, which can be known again, and the other as None."""
    for node in nodes:
        if node.ratio_out < math.inf or node.is_backward or node.parent is None:
            continue
        for row in node.rows("output"):
            target, golden = row.target, row.golden
            if target is None or golden is None or {target.kind, golden.kind} != {"tensor", "null"}:
                continue
            side = TARGET if target.kind == "tensor" else GOLDEN
            if mark := fingerprint(row, side):
                yield node, row, side, mark


def _last_uses(nodes: Sequence[Node], sides: set[Side]) -> dict[tuple[Side, Fingerprint], int]:
    """Where each tensor is taken in last."""
    return {
        (side, mark): node.order
        for node in nodes
        for row in node.rows("input")
        for side in sides
        if (mark := fingerprint(row, side))
    }
