"""What the compiled graph itself says of its kernels: ``rank_R/graphs/ms_output_trace_code_graph_{graph}.ir``.

MindSpore names a kernel by the scope in which it met the operator first. Of layers that are alike that is the first
one: the gradient of every ``Dense`` is named after one of them, and so are operators without parameters (``x + y``, an
activation). The graph knows better: a gradient says which forward node it belongs to, inputs say what ran before, and
each node has the source lines it comes from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from msprobe_ms.graph.scope import Component, Scope, parse_scope
from msprobe_ms.log import logger

_NODE = re.compile(r"\s+(%\d+)\([^)]*\) = (.*)")
_INPUT = re.compile(r"%(?:\d+|para\w*)")
_IDENTITY = re.compile(r'\b(forward_)?unique_id: "(\d+)"')
_NAME = re.compile(r"\s+# Fullname with scope: \((.*)\)")
_LINE = re.compile(r"\s+# In file (.+):(\d+)(?:~\d+)?(?:, \d+~\d+)?/(.*)/")
_AGAIN = re.compile(r"-op[1-9]\d*$")
_FUNCTION = re.compile(r"(?:async )?def (\w+)")
#: Inputs of inputs that are asked where a kernel stands, through nodes that are none.
_DEEPEST = 64


@dataclass(slots=True)
class Node:
    """A node of one graph. ``inputs`` are ids of nodes, ``reads_parameter`` where one is a parameter."""

    id: str
    inputs: tuple[str, ...]
    reads_parameter: bool
    identity: str = ""
    forward: str = ""
    name: str = ""
    lines: list[tuple[str, str, str]] = field(default_factory=list)


class Graph:
    """The kernels of one compiled graph by name; ``/`` or ``_`` in names do not count."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._nodes: dict[str, Node] = {}
        self._by_name: dict[str, Node] = {}
        #: Several nodes share an identity where one function was compiled into several places.
        self._by_identity: dict[str, list[Node]] = {}
        self._places: dict[str, tuple[Component, ...]] = {}
        node: Node | None = None
        prefix, graphs = "", 0
        for line in lines:
            if line.startswith("subgraph @"):
                prefix, graphs = f"{graphs}", graphs + 1
            elif found := _NODE.match(line):
                node = _node(found[1], found[2], prefix)
                self._nodes[prefix + found[1]] = node
                if node.identity:
                    self._by_identity.setdefault(node.identity, []).append(node)
            elif node is not None and (found := _NAME.match(line)):
                node.name = found[1]
                self._by_name[found[1].replace("/", "_")] = node
            elif node is not None and (found := _LINE.match(line)):
                node.lines.append((found[1], found[2], found[3].strip()))

    def scope(self, name: str) -> Scope | None:
        """Where a kernel belongs; None where the graph does not tell more than its name."""
        node = self._by_name.get(name.replace("/", "_"))
        if node is None:
            return None
        scope = parse_scope(node.name)
        return replace(scope, components=self._place(node, ()))

    def call_site(self, name: str) -> tuple[str, ...]:
        """The source lines of a kernel, of a gradient those of its forward kernel, innermost first."""
        node = self._by_name.get(name.replace("/", "_"))
        if node is None:
            return ()
        frames, function = [], "construct"
        for file, line, code in node.lines:
            if defined := _FUNCTION.match(code):
                function = defined[1]
                if ":" in code and code.rstrip().endswith(":"):
                    continue
            frames.append(f"File {file}, line {line}, in {function}, \n {code}")
        return tuple(dict.fromkeys(reversed(frames)))

    def _place(self, node: Node, above: tuple[str, ...]) -> tuple[Component, ...]:
        if node.name in self._places:
            return self._places[node.name]
        own = parse_scope(node.name)
        place = own.components
        if node.name not in above and len(above) < _DEEPEST:
            above = (*above, node.name)
            if (forward := self._forward(node)) is not None:
                place = self._place(forward, above)
            elif own.backward and _operator(node) == "AddN":
                place = ()  # gradients of a value that was used several times: of no Cell
            elif place and not own.backward and _AGAIN.search(node.name):
                before, parameter = self._kernels_before(node)
                if before and not parameter:
                    place = _beside([self._place(each, above) for each in before], place)
        self._places[node.name] = place
        return place

    def _forward(self, node: Node) -> Node | None:
        """The forward node of a gradient; of several with its identity that which it shares values with."""
        candidates = self._by_identity.get(node.forward, []) if node.forward else []
        reads = set(node.inputs)
        related = (each for each in candidates if each.id in reads or not reads.isdisjoint(each.inputs))
        return next(related, candidates[0] if candidates else None)

    def _kernels_before(self, node: Node) -> tuple[list[Node], bool]:
        """The kernels that a node reads, the latest last, and whether it reads a parameter."""
        found: dict[str, Node] = {}
        parameter, open_, seen = node.reads_parameter, list(node.inputs), set(node.inputs)
        while open_:
            name = open_.pop()
            each = self._nodes.get(name)
            if each is None:
                continue
            if each.name and parse_scope(each.name).components and not _is_passage(each):
                found[name] = each
                continue
            parameter = parameter or each.reads_parameter
            open_ += [more for more in each.inputs if more not in seen]
            seen.update(each.inputs)
        return [found[name] for name in sorted(found, key=lambda name: int(name.rpartition("%")[2]))], parameter


def _node(name: str, text: str, prefix: str) -> Node:
    inputs = _INPUT.findall(text.split(" {")[0])
    node = Node(
        prefix + name,
        tuple(prefix + each for each in inputs if not each.startswith("%para")),
        any(each.startswith("%para") for each in inputs),
    )
    for is_forward, identity in _IDENTITY.findall(text):
        if is_forward:
            node.forward = identity
        else:
            node.identity = identity
    return node


def _operator(node: Node) -> str:
    return node.name.rpartition("/")[2].partition("-op")[0]


def _is_passage(node: Node) -> bool:
    """Whether no kernel runs: a value handed on."""
    return _operator(node) in ("Load", "Depend", "TupleGetItem", "MakeTuple", "UpdateState")


def _beside(before: Sequence[tuple[Component, ...]], own: tuple[Component, ...]) -> tuple[Component, ...]:
    """Where an operator stands that is named after the first of its kind, given where what it reads stands."""
    latest = before[-1]
    common = _common(own, latest)
    if common in (own, latest):
        return own
    ours, theirs = own[len(common)], latest[len(common)]
    if ours.class_name == theirs.class_name:  # the same place in another of the layers that are alike
        return (*common, theirs, *own[len(common) + 1 :])
    shared = latest
    for each in before:
        shared = _common(shared, each)
    return shared


def _common(one: tuple[Component, ...], other: tuple[Component, ...]) -> tuple[Component, ...]:
    length = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[:length]


class Graphs:
    """The graphs of kernel files, each read once."""

    def __init__(self) -> None:
        self._read: dict[Path, Graph | None] = {}

    def of(self, folder: Path) -> Graph | None:
        """The graph whose files lie in ``rank_R/Net/{graph}/{iteration}``; None where none is told."""
        if folder.parent not in self._read:
            self._read[folder.parent] = read_graph(folder)
        return self._read[folder.parent]


def read_graph(folder: Path) -> Graph | None:
    """The graph whose kernel files lie in ``folder``, ``rank_R/Net/{graph}/{iteration}``; None where none is told."""
    name = f"ms_output_trace_code_graph_{folder.parent.name}.ir"
    for above in folder.absolute().parents[:3]:
        path = above / "graphs" / name
        try:
            if path.is_file():
                with path.open(encoding="utf-8", errors="replace") as lines:
                    return Graph(lines)
        except OSError as error:
            logger.warning("%s: cannot be read: %s", path, error.strerror or error)
    return None
