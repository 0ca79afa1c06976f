"""What every other difference follows from: the origin that it inherits its error from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msprobe_ms.comparison.model import Origin, Row
from msprobe_ms.comparison.origin.nodes import Node, error_ratio
from msprobe_ms.comparison.origin.rows_of_nodes import RowsOfNodes
from msprobe_ms.comparison.terms import TARGET
from msprobe_ms.dump.names import beginnings


def fill_inheritance(rows: RowsOfNodes, origins: Mapping[Node, Origin], lacking: Origin | None = None) -> None:
    """Fill ``Row.inherited_from`` of every differing row that is no origin with the name of a node where error begins.

    A node inherits from the origin around it, from those who made what it takes in, from what ran inside it or before
    its gradient; where nothing of that was recorded, from the last origin before it. What an origin's node gives out
    besides follows from that origin.

    ``lacking``: a parameter without a gradient. Sums of gradients lack the part of the branch that ends there, so that
    in backward all inherits from its call that follows from no other origin.
    """
    if not origins and lacking is None:
        return
    branch = _branch(rows.nodes, lacking) if lacking is not None else ""
    sources: dict[Node, str] = {}
    made: dict[int, str] = {}
    latest = ""
    for node, keys, start in rows.keys(TARGET):
        largest = max(node.ratio_in, node.ratio_parameters, node.ratio_out, node.ratio_without_effect)
        if largest <= 1 and node not in origins:
            continue
        if node in origins:
            source = latest = node.name
        else:
            source = _around(node, origins) or _taken(node, made, keys, start) or _inside(node, sources) or latest
            source = source or (branch if node.is_backward else "")
        sources[node] = source
        for place, row in enumerate(node.pair.rows, start):
            if error_ratio(row) > 1:
                if node not in origins or _follows(row, node, origins[node]):
                    row.inherited_from = source
                if row.state == "output" and (key := keys[place]):
                    made[key] = source


def _branch(nodes: Sequence[Node], lacking: Origin) -> str:
    """The call of a parameter without a gradient, where the branch ends that sums of gradients lack."""
    names = {node.name for node in nodes}
    return next((name for name in beginnings(lacking.target) if name in names), "")


def _follows(row: Row, node: Node, origin: Origin) -> bool:
    """Whether a row of the origin's own node is given out, or another parameter where the origin is one."""
    if row.target is None or origin.target in (row.target.name, node.name):
        return False
    return row.state == "output" or row.state == origin.state == "parameters"


def _around(node: Node, origins: Mapping[Node, Origin]) -> str:
    if node.parent is None or node.ratio_in <= 1:
        return ""
    return next((up.name for up in node.ancestors() if up in origins), "")


def _taken(node: Node, made: Mapping[int, str], keys: Sequence[int], start: int) -> str:
    """``keys``: from ``start`` on those of its rows; ``made`` has none that is 0."""
    for place, row in enumerate(node.pair.rows, start) if made else ():
        if row.state == "input" and (source := made.get(keys[place])) is not None and error_ratio(row) > 1:
            return source
    return ""


def _inside(node: Node, sources: Mapping[Node, str]) -> str:
    if not (node.children or node.context):
        return ""
    return next((sources[each] for each in (*node.children, *node.context) if sources.get(each)), "")
