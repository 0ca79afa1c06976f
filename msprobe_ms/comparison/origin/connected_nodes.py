"""Make the nodes of a comparison and connect them: what encloses each, what is inside, what else it is made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from msprobe_ms.comparison.model import Pair
from msprobe_ms.comparison.origin.nodes import Node
from msprobe_ms.dump.names import BACKWARD, FORWARD, PARAMETERS_GRAD, is_fused, is_loss, parts_named


def nodes_of(pairs: Sequence[Pair]) -> list[Node]:
    """Build the nodes of measured pairs, in the order of execution, and connect them."""
    nodes = [
        Node(order, pair, pair.target.name, pair.target.parsed)
        for order, pair in enumerate(pairs)
        if pair.target is not None and pair.golden is not None
    ]
    beside_calls = any(not node.is_save for node in nodes)
    for node in nodes:
        node.measure()
        node.is_loss = beside_calls and is_loss(node.parsed)
    _connect(nodes, pairs)
    return nodes


def _connect(nodes: list[Node], pairs: Sequence[Pair]) -> None:
    """Fill parents, children, context and gradients."""
    by_name = {node.name: node for node in nodes}
    around = {pair.target.name: pair.target.parent for pair in pairs if pair.target is not None and not pair.matched}
    inside: dict[Node, list[Node]] = defaultdict(list)
    forwards: dict[str, list[Node]] = defaultdict(list)
    backwards: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        parent = node.pair.target.parent if node.pair.target else None
        if parent in around:
            parent = _nearest(parent, around)
        node.parent = by_name.get(parent or "")
        parsed = node.parsed
        if parsed is not None and parsed.is_module:
            calls = {FORWARD: forwards, BACKWARD: backwards}.get(parsed.direction, defaultdict(list))
            for module in _modules(parsed.name):
                calls[module].append(node)
    _break_rings(nodes)
    for node in nodes:
        if node.parent is not None:
            inside[node.parent].append(node)
    for around_node, children in inside.items():
        around_node.children = children
    for node in nodes:
        parsed = node.parsed
        if parsed is None:
            continue
        if parsed.direction == BACKWARD:
            counterpart = by_name.get(str(parsed.in_direction(FORWARD)))
            if counterpart is not None:
                node.context, counterpart.gradients = (counterpart,), node
        elif parsed.direction == PARAMETERS_GRAD:
            node.context = [*forwards[parsed.name], *backwards[parsed.name]]


def _modules(name: str) -> Collection[str]:
    """The modules that a call is of: of layers that are one on the other side, each of them as well."""
    return {name, *parts_named(name)} if is_fused(name) else (name,)


def _break_rings(nodes: list[Node]) -> None:
    """Calls that enclose each other, as a damaged construct.json says, would never end: the last of a ring is free."""
    sound = set[Node]()
    for node in nodes:
        path: dict[Node, None] = {}
        up: Node | None = node
        while up is not None and up not in sound:
            path[up] = None
            if up.parent in path:
                up.parent = None
            up = up.parent
        sound.update(path)


def _nearest(parent: str | None, around: dict[str, str | None]) -> str | None:
    """The nearest enclosing call with a counterpart; ``around``: what encloses the calls without one."""
    seen = set[str | None]()
    while parent in around and parent not in seen:
        seen.add(parent)
        parent = around[parent]
    return parent
