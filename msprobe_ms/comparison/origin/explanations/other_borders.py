"""Borders that two implementations draw elsewhere: a container of one side holds a call more, at its begin or end.

``Sequential(conv, norm, upsample)`` stands beside ``Sequential(conv, norm)`` whose code upsamples afterwards. What the
two give out is of other sizes; the smaller container's is what a call inside made, which stands beside its own
counterpart there.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.fingerprints import Fingerprint, fingerprint
from msprobe_ms.comparison.model import Pair, Row
from msprobe_ms.comparison.origin.nodes import Node
from msprobe_ms.comparison.origin.protocols import Surveyed
from msprobe_ms.comparison.statistics import element_count
from msprobe_ms.comparison.terms import GOLDEN, TARGET, Side
from msprobe_ms.dump.model import Entry

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence


class OtherBorders(Surveyed):
    """Inputs and outputs of containers that have other sizes, where one side has a call more inside."""

    name: ClassVar[str] = "other borders"

    def __init__(self, evidence: Evidence) -> None:
        super().__init__(evidence)
        containers = (node for node in evidence.nodes if node.is_module and node.children)
        rows = [(row, node) for node in containers for row in _of_other_sizes(node)]
        if not rows:
            return
        # Calls around those without a counterpart, on both sides.
        around = {entry.parent for pair in evidence.pairs if not pair.matched for entry in _entries(pair)}
        for row, node in rows:
            for side, other in zip((TARGET, GOLDEN), _entries(node.pair)[::-1], strict=False):
                tensor = fingerprint(row, side)
                if other.name in around and tensor is not None and _is_inside(node, row.state, side, tensor):
                    self.let_pass(row, node)


def _entries(pair: Pair) -> list[Entry]:
    """The target's and the golden's, those that there are."""
    return [entry for entry in (pair.target, pair.golden) if entry is not None]


def _of_other_sizes(node: Node) -> list[Row]:
    return [
        row
        for row in node.rows("input", "output")
        if row.deviation == math.inf
        and row.target is not None
        and row.golden is not None
        and row.target.kind == row.golden.kind == "tensor"
        and element_count(row.target) != element_count(row.golden)
    ]


def _is_inside(node: Node, state: str, side: Side, tensor: Fingerprint) -> bool:
    """Whether a call in ``node`` takes in, or gives out, the same tensor on this side, beside one of its size."""
    return any(
        fingerprint(row, side) == tensor and row.deviation != math.inf
        for child in node.children
        for row in child.rows(state)
    )
