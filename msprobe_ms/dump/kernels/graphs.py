"""Compiled graphs of kernel files: what ``rank_R/graphs/ms_output_trace_code_graph_{graph}.ir`` says of the kernels.

MindSpore names a kernel by the scope in which it met the operator first. Of layers that are alike that is the first
one: the gradient of every ``Dense`` is named after one of them, and so are operators without parameters (``x + y``, an
activation); in a jitted function nothing is named after its Cell. The graph knows better: a gradient
says which forward node it belongs to, inputs say what ran before and which parameters are read, and each node has the
source lines it comes from.
"""

from __future__ import annotations

import math
import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from io import TextIOWrapper
from pathlib import Path

from msprobe_ms.dump.kernels.kernel_files import KernelFile
from msprobe_ms.dump.kernels.scope_path import Cells, Component, Scope, parse_scope
from msprobe_ms.support.files import leads_out, open_regular
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr

_NODE = re.compile(r"\s+(%\d{1,18})\([^)]*\) = (.*)")
_INPUT = re.compile(r"%(?:para\d+_)?[\w.]+")
_IDENTITY = re.compile(r'\b(forward_)?unique_id: "(\d+)"')
_NAME = re.compile(r"\s+# Fullname with scope: \((.*)\)")
_LINE = re.compile(r"\s+# In file (.+):(\d+)(?:~\d+)?(?:, \d+~\d+)?/(.*)/")
#: Nodes without a kernel that lie between two kernels at most, of those looked at.
_MOST_PASSED = 256
#: Nobody's line of source code is longer.
_LONGEST = 10_000
_FUNCTION = re.compile(r"(?:async )?def (\w+)")


@dataclass(slots=True)
class Node:
    """A node of one graph. ``inputs`` are ids of nodes, ``parameters`` the names of parameters and graph inputs."""

    id: str
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    identity: str = ""
    forward: str = ""
    name: str = ""
    lines: list[tuple[str, str, str]] = field(default_factory=list)


class Graph:
    """The kernels of one compiled graph by name; ``/`` or ``_`` in names do not count."""

    def __init__(self, lines: Iterable[str], cells: Cells | None = None) -> None:
        self._cells = cells or {}
        self._nodes: dict[str, Node] = {}
        self._by_name: dict[str, Node] = {}
        #: Several nodes share an identity where one function was compiled into several places.
        self._by_identity: dict[str, list[Node]] = {}
        self._places: dict[str, tuple[Component, ...]] = {}
        self._is_placed = False
        self._backward: dict[str, bool] = {}
        self._above: tuple[Component, ...] | None = None
        #: Names of several kernels of which it cannot be told which number is which.
        self._doubtful: set[str] = set()
        #: The graphs of the same process: gradients of a jitted Cell are a graph of their own.
        self._others: Callable[[], Iterable[Graph]] = tuple
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
            elif node is None or len(line) > _LONGEST:
                continue
            elif found := _NAME.match(line):
                node.name = found[1]
                self._by_name[found[1].replace("/", "_")] = node
            elif found := _LINE.match(line):
                node.lines.append((found[1], found[2], found[3].strip()))

    def prepare(self, ran: Mapping[str, int], beside: Callable[[], Iterable[Graph]]) -> None:
        """Tell the graph which kernels ran, by name, with their order; and of the graphs beside it.

        The framework may number kernels of one name anew after it wrote the graph. Their order is taken to have stayed;
        where something would then have run before what it reads, and always of what was expanded, which number is
        which cannot be told.
        """
        self._others = beside
        known = _numbers(self._by_name)
        for base, numbers in _numbers(ran).items():
            others = known.get(base, [])
            if len(numbers) == len(others) and numbers != others:
                nodes = [self._by_name[f"{base}-op{number}"] for number in others]
                self._by_name.update(zip((f"{base}-op{number}" for number in numbers), nodes, strict=True))
        order = {self._by_name[name].id: place for name, place in ran.items() if name in self._by_name}
        self._doubtful = {base for base, numbers in known.items() if base.startswith("Expand_") and len(numbers) > 1}
        for node in [*self._by_name.values()]:
            place = order.get(node.id, math.inf)
            late = [each for each in self._read_by(node, lambda each: True)[0] if order.get(each.id, -1) > place]
            bases = {_base(each.name) for each in (node, *late)} if late else set()
            if bases.isdisjoint(self._doubtful):
                self._doubtful |= {base for base in bases if len(known.get(base, ())) > 1}

    def scope(self, name: str) -> Scope | None:
        """Where a kernel belongs; None where the graph does not tell more than its name."""
        node = self._by_name.get(name.replace("/", "_"))
        if node is None:
            return None
        own = parse_scope(node.name)
        if (base := _base(name)) in self._doubtful:
            # Of alike gradients the name is another's.
            alike = [each for key, each in self._by_name.items() if _base(key) == base]
            return replace(own, components=(), backward=True) if all(map(self._is_backward, alike)) else None
        return replace(own, components=self._whole(node), backward=self._is_backward(node))

    def call_site(self, name: str) -> tuple[str, ...]:
        """The source lines of a kernel, of a gradient those of its forward kernel, innermost first."""
        node = self._by_name.get(name.replace("/", "_"))
        if node is None or _base(name) in self._doubtful:
            return ()
        frames, function = [], "construct"
        for file, line, code in node.lines:
            if defined := _FUNCTION.match(code):
                function = defined[1]
                if code.endswith(":"):
                    continue
            frames.append(f"File {file}, line {line}, in {function}, \n {code}")
        return tuple(dict.fromkeys(reversed(frames)))

    def _whole(self, node: Node) -> tuple[Component, ...]:
        """A node's place in the model."""
        if not self._is_placed:
            self._is_placed = True
            first = {base: numbers[0] for base, numbers in _numbers(self._by_name).items()}
            for each in self._nodes.values():  # what a node reads comes before it
                self._places[each.id] = self._place(each, first)
        place = self._places.get(node.id, ())
        whole = (*self._root(), *place)
        return whole if place and self._cells.get(_dotted(whole)) == place[-1].class_name else place

    def _place(self, node: Node, first: Mapping[str, int]) -> tuple[Component, ...]:
        """Where a node stands below the graph's root; ``first``: the least number of each name."""
        own = parse_scope(node.name)
        if node.forward and (found := self._forward(node)) is not None:
            return found
        if own.backward and _operator(node) == "AddN":
            return ()  # gradients of a value that was used several times: of no Cell
        if own.backward or not node.name:
            return own.components
        if not own.components:
            return self._holder(node)
        base, _, number = node.name.replace("/", "_").rpartition("-op")
        if number != str(first.get(base)):
            before, parameters = self._read_by(node, lambda each: bool(parse_scope(each.name).components))
            if before and not parameters:
                return _beside([self._places.get(each.id, ()) for each in before], own.components)
        return own.components

    def _forward(self, node: Node) -> tuple[Component, ...] | None:
        """The place of a gradient's forward node; of several of one identity that which it shares values with."""
        candidates, reads = self._by_identity.get(node.forward, []), set(node.inputs)
        related = (each for each in candidates if each.id in reads or not reads.isdisjoint(each.inputs))
        forward = next(related, candidates[0] if candidates else None)
        if forward is not None:
            return self._places.get(forward.id)
        for other in self._others():
            if other is not self and (found := other._by_identity.get(node.forward)):
                return other._whole(found[0])
        return None

    def _root(self) -> tuple[Component, ...]:
        """Where in the model the graph begins: a Cell that was compiled alone is the root of its names."""
        if self._above is None:
            self._above = ()
            for node in [*self._by_name.values()] if self._cells else []:
                own, holder = parse_scope(node.name), self._holder(node)
                inside = own.components
                if inside and not own.backward and len(holder) > len(inside) and holder[-len(inside) :] == inside:
                    self._above = holder[: -len(inside)]
                    break
        return self._above

    def _holder(self, node: Node) -> tuple[Component, ...]:
        """The Cell whose parameters a kernel reads; () where they are of several, of none, or of an optimizer's."""
        _, parameters = self._read_by(node, lambda each: True)
        holders = {name.rpartition(".")[0] for name in parameters if "." in name}
        if len(holders) != 1 or any("/optim/" in file for file, _, _ in node.lines):
            return ()
        parts = holders.pop().split(".")
        names = [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
        if not all(name in self._cells for name in names):
            return ()
        return tuple(Component(part, self._cells[name]) for part, name in zip(parts, names, strict=True))

    def _is_backward(self, node: Node) -> bool:
        """Parts that a gradient's kernel was expanded into are not named as gradients; they read some."""
        if not node.name.startswith("Expand/") and _operator(node) != "AddN":
            return parse_scope(node.name).backward
        if node.id not in self._backward:
            self._backward[node.id] = parse_scope(node.name).backward  # were there a cycle
            before, _ = self._read_by(node, lambda each: True)
            self._backward[node.id] = self._backward[node.id] or any(map(self._is_backward, before))
        return self._backward[node.id]

    def _read_by(self, node: Node, wanted: Callable[[Node], bool]) -> tuple[list[Node], list[str]]:
        """The kernels that a node reads, the latest last, through nodes that are not wanted; and the parameters."""
        found: dict[str, Node] = {}
        passed = 0
        parameters, open_, seen = [*node.parameters], list(node.inputs), set(node.inputs)
        while open_:
            each = self._nodes.get(open_.pop())
            if each is None:
                continue
            if each.name and not _is_passage(each) and wanted(each):
                found[each.id] = each
                continue
            passed += 1
            if passed > _MOST_PASSED:
                break
            parameters += each.parameters
            open_ += [more for more in each.inputs if more not in seen]
            seen.update(each.inputs)
        return [found[name] for name in sorted(found, key=lambda name: int(name.rpartition("%")[2]))], parameters


def _node(name: str, text: str, prefix: str) -> Node:
    inputs = _INPUT.findall(text.split(" {")[0])
    nodes = tuple(prefix + each for each in inputs if each[1:].isdecimal())
    node = Node(prefix + name, nodes, tuple(each.partition("_")[2] for each in inputs if each.startswith("%para")))
    for is_forward, identity in _IDENTITY.findall(text):
        if is_forward:
            node.forward = identity
        else:
            node.identity = identity
    return node


def _base(name: str) -> str:
    """A name without its number, spelt as in file names."""
    return name.replace("/", "_").rpartition("-op")[0]


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
    ours, theirs = own[len(common) :], latest[len(common) :]
    if ours[0].class_name == theirs[0].class_name and len(ours) + len(theirs) > 2:
        return (*common, theirs[0], *ours[1:])  # the same place in another of the layers that are alike
    if len(ours) == 1:
        return own  # a Cell beside the one that it reads from
    shared = latest
    for each in before:
        shared = _common(shared, each)
    return shared


def _dotted(place: Iterable[Component]) -> str:
    return ".".join(each.attribute for each in place)


def _common(one: tuple[Component, ...], other: tuple[Component, ...]) -> tuple[Component, ...]:
    length = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[:length]


def _numbers(names: Iterable[str]) -> dict[str, list[int]]:
    """Names without their numbers → these, in order."""
    found: dict[str, set[int]] = {}
    for name in names:
        base, mark, number = name.replace("/", "_").rpartition("-op")
        if mark and number.isdecimal():
            found.setdefault(base, set()).add(int(number))
    return {base: sorted(numbers) for base, numbers in found.items()}


class Graphs:
    """The graphs of kernel files, each read once."""

    def __init__(self, files: Iterable[KernelFile], cells: Cells | None = None) -> None:
        self._cells = cells
        self._read: dict[Path, Graph | None] = {}
        self._ran: dict[Path, dict[str, int]] = {}
        for place, file in enumerate(files):
            self._ran.setdefault(file.path.parent.parent, {}).setdefault(file.op_name.replace("/", "_"), place)

    def of(self, folder: Path) -> Graph | None:
        """Return the graph whose files lie in ``rank_R/Net/{graph}/{iteration}``; None where no file holds it."""
        if folder.parent not in self._read:
            graph = read_graph(folder, self._cells)
            ran = self._ran.get(folder.parent, {})
            if graph is not None:
                graph.prepare(ran, partial(_of_one_rank, weakref.ref(self), folder))
            self._read[folder.parent] = graph
        return self._read[folder.parent]


def _of_one_rank(graphs: weakref.ref[Graphs], folder: Path) -> Iterator[Graph]:
    """Those of the rank of one of them, which must not hold all others itself."""
    if (known := graphs()) is not None:
        for each in sorted(folder.parent.parent.iterdir()):
            if each.is_dir() and (found := known.of(each / folder.name)) is not None:
                yield found


def read_graph(folder: Path, cells: Cells | None = None) -> Graph | None:
    """Read the graph whose kernel files lie in ``rank_R/Net/{graph}/{iteration}``; None where no file holds it."""
    name = f"ms_output_trace_code_graph_{folder.parent.name}.ir"
    for above in folder.absolute().parents[:3]:
        path = above / "graphs" / name
        try:
            if path.is_file() and not leads_out(path, above):
                with open_regular(path) as file, TextIOWrapper(file, "utf-8", errors="replace") as lines:
                    return Graph(lines, cells)
        except OSError as error:
            logger.warning(tr("{path}: cannot be read: {strerror}", path=path, strerror=error.strerror or error))
    return None
