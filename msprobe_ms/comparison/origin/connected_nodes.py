"""Make the nodes of a comparison and connect them: what encloses each, what is inside, what else it is made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from msprobe_ms.comparison.model import Pair
from msprobe_ms.comparison.origin.nodes import Node
from msprobe_ms.dump.names import BACKWARD, FORWARD, is_fused, is_loss, parts_named


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
    around = {pair.target.name: pair.target.parent for pair in pairs if pair.target is not None and not pair.matched}
    inside: dict[Node, list[Node]] = defaultdict(list)
    forwards: dict[str, list[Node]] = defaultdict(list)
    backwards: dict[str, list[Node]] = defaultdict(list)
    parents = [_parent_of(node, around) for node in nodes]
    named = {parent for parent in parents if parent is not None}
    of_gradients = [node for node in nodes if node.parsed is not None and node.parsed.direction == BACKWARD]
    named.update(_forward_name(node) for node in of_gradients)
    by_name = {node.name: node for node in nodes if node.name in named}  # of a million calls few
    for node, parent in zip(nodes, parents, strict=True):
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
    for node in of_gradients:
        counterpart = by_name.get(_forward_name(node))
        if counterpart is not None:
            node.context, counterpart.gradients = (counterpart,), node
    for node in nodes:
        if node.is_parameter_gradient and node.parsed is not None:
            node.context = [*forwards[node.parsed.name], *backwards[node.parsed.name]]


def _parent_of(node: Node, around: dict[str, str | None]) -> str | None:
    """The name of the nearest call with a counterpart that encloses the node's; ``around`` as in ``_nearest``."""
    parent = node.pair.target.parent if node.pair.target else None
    return _nearest(parent, around) if parent in around else parent


def _forward_name(node: Node) -> str:
    """The name of the forward call of a backward one."""
    return str(node.parsed.in_direction(FORWARD)) if node.parsed is not None else ""


def _modules(name: str) -> Collection[str]:
    """The modules that a call is of: of layers that are one on the other side, each of them as well."""
    return {name, *parts_named(name)} if is_fused(name) else (name,)


def _break_rings(nodes: list[Node]) -> None:
    """Calls that enclose each other, as a damaged construct.json says, would never end: the last of a ring is free."""
    sound = set[Node]()
    for node in (each for each in nodes if each.parent is not None):
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
