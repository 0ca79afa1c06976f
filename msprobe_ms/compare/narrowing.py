"""Single calls that compute in another width of float than their twin: rounding explains them, and nobody meant it.

In mixed precision many calls narrow what they take in, and all is as it should be. Where few do, each is told.
"""

from __future__ import annotations

from msprobe_ms.compare.dtypes import parse_dtype
from msprobe_ms.compare.model import Row
from msprobe_ms.compare.nodes import Node

#: The share of calls up to which another width is the exception.
_FEW = 0.1


def odd_widths(nodes: list[Node]) -> set[str]:
    """Names of the calls that alone give out floats of another width than their twin's; none where many do."""
    if _one_width(nodes):
        return set()
    calls = [node for node in nodes if not node.is_backward and not node.is_save]
    found = {node.name for node in calls if _changes_width(node)}
    return found if len(found) <= max(1.0, _FEW * len(calls)) else set()


def _one_width(nodes: list[Node]) -> bool:
    """Whether all floats of both dumps are of one width."""
    first = next((row.numbers for node in nodes for row in node.pair.rows if row.numbers), None)
    if first is None:
        return False
    widths = {parse_dtype(sort[2]).epsilon for table in first[0] for sort in table.known_sorts}
    return len(widths - {0.0}) <= 1


def _changes_width(node: Node) -> bool:
    inputs, outputs = list(map(_widths, node.rows("input"))), list(map(_widths, node.rows("output")))
    return any(mine != other for mine, other in outputs) and all(mine == other for mine, other in inputs)


def _widths(row: Row) -> tuple[float, float]:
    """Epsilons of both sides; equal where one is no float."""
    target, golden = row.target, row.golden
    mine = parse_dtype(target.dtype).epsilon if target is not None and target.kind == "tensor" else 0.0
    other = parse_dtype(golden.dtype).epsilon if golden is not None and golden.kind == "tensor" else 0.0
    return (mine, other) if mine and other else (0.0, 0.0)
