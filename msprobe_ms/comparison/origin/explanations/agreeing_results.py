"""What comes out right was computed right: within a call whose results agree, and before uses that agree, is no origin.

A value that differs there stands beside another than its counterpart (operands in another order, calls of one function
in another order, one call beside several that do the same together), or has no effect on what is computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.origin.nodes import RESULTS, Node, error_ratio
from msprobe_ms.comparison.origin.protocols import Surveyed

if TYPE_CHECKING:
    from msprobe_ms.comparison.model import Row
    from msprobe_ms.comparison.origin.evidence import Evidence


class AgreeingResults(Surveyed):
    """Inputs of calls whose results agree; all values of functions called in a module whose results agree, or before one.

    Not a module's own results: modules are paired by their names and their place in the network, so that what one gives
    out of inputs that agree is its own doing, though the error may fade behind it. Nor parameters.
    """

    name: ClassVar[str] = "results agree"

    def __init__(self, evidence: Evidence) -> None:
        super().__init__(evidence)
        right = {node for node in evidence.nodes if comes_out_right(node)}
        #: Direction and parent → the next module that was called there, as the nodes are walked from the last to the first.
        following: dict[tuple[bool, Node | None], Node] = {}
        for node in reversed(evidence.nodes):
            place, parent = (node.is_backward, node.parent), node.parent
            around = parent in right and parent is not None and parent.is_backward == node.is_backward
            if _is_module(node):
                following[place] = node
            elif following.get(place) in right:
                around = True
            if max(node.ratio_in, node.ratio_out) <= 1 or node.is_save:
                continue
            for row in node.pair.rows:
                if error_ratio(row) > 1 and row.state != "parameters":
                    if (around and not _is_module(node)) or (row.state == "input" and (node in right or around)):
                        self.let_pass(row, node)


def _is_module(node: Node) -> bool:
    return node.parsed is not None and node.parsed.is_module


def comes_out_right(node: Node) -> bool:
    """Whether there are results of a node that can be compared, and all of them agree."""
    results = [row for row in node.rows(*RESULTS) if row.deviation is not None]
    return node.ratio_out <= 1 and any(map(_tells, results))


def _tells(row: Row) -> bool:
    """Whether it is a tensor of floats that are not all alike."""
    item = row.golden
    if item is None or item.kind != "tensor" or not parse_dtype(item.dtype).epsilon:
        return False
    return item.maximum != item.minimum
