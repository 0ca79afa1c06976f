"""What passes through does not count: a call that gives out what it takes in, on both sides, computes nothing.

Such calls (Identity, Dropout of probability 0) stand at other places in other implementations of one network, so that
one far apart from its counterpart stands beside another value. If the value itself is wrong, the call that computed it
or the next that takes it in shows it as well.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.comparison.fingerprints import fingerprint
from msprobe_ms.comparison.origin.nodes import Node, error_ratio
from msprobe_ms.comparison.origin.protocols import Surveyed
from msprobe_ms.comparison.terms import GOLDEN, TARGET

if TYPE_CHECKING:
    from msprobe_ms.comparison.origin.evidence import Evidence

#: The least deviation of what stands beside another value: a layer computed in bfloat16 is 0.01 apart at most.
_FAR = 0.05


class PassingThrough(Surveyed):
    """Inputs and results of calls that pass on what they take in, far apart from their counterparts'."""

    name: ClassVar[str] = "passes through"

    def __init__(self, evidence: Evidence) -> None:
        super().__init__(evidence)
        for node in evidence.nodes:
            if node.ratio_in <= 1 or node.parent is None or not _passes_on(node):
                continue
            rows = [row for row in node.rows("input", "output") if error_ratio(row) > 1]
            if any((row.deviation or 0.0) > _FAR for row in rows):
                for row in rows:
                    self.let_pass(row, node)


def _passes_on(node: Node) -> bool:
    """Whether each result is the input in the same place, on both sides."""
    rows = list(zip_longest(node.rows("input"), node.rows("output")))
    return bool(rows) and all(
        taken is not None and given is not None
        and (key := fingerprint(taken, side)) is not None and key == fingerprint(given, side)
        for taken, given in rows
        for side in (TARGET, GOLDEN)
    )  # fmt: skip
