"""Outline of a dump: its modules, the tree of their paths, their order, shapes and statistics of their tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from msprobe_ms.comparison.pairing.automatic.layer_names import kind_of
from msprobe_ms.dump.model import Dump, Item
from msprobe_ms.dump.names import BACKWARD, FORWARD, PARAMETERS_GRAD, EntryName, parse_entry

Shape = tuple[int, ...]

#: What of a module carries statistics, in the order of the arrays.
INPUT, OUTPUT, PARAMETER = range(3)

#: Running statistics are parameters in MindSpore and none in PyTorch: they say nothing about which module it is.
_RUNNING = ("moving_", "running_", "num_batches")

#: Levels of nesting looked at; keeps what is nested in a thousand levels from taking hours.
_DEEPEST = 40

#: Parts of a path that take part: what walks paths part by part takes the square of them.
_MOST_PARTS = 100

_NOT_A_NUMBER = (math.nan, math.nan, math.nan)


@dataclass(slots=True)
class Node:
    """One module. ``parent`` and ``children`` are numbers of nodes; -1 is no parent.

    ``parameters``  shapes of its own parameters, dimensions but 1 and shapes sorted; None where none are recorded
    ``held``        shapes of the parameters of modules below it that were never called: it uses them itself
    ``rank``        place in the order in which first calls ended; children before their parents
    ``statistics``     (norm, maximum, minimum) of the first input, first output and most telling parameter
    ``checksums``   the same tensors' md5
    """

    path: str
    class_name: str
    parent: int = -1
    children: list[int] = field(default_factory=list)
    rank: float = -1.0
    calls: int = 0
    input: Shape | None = None
    output: Shape | None = None
    parameters: tuple[Shape, ...] | None = None
    held: tuple[Shape, ...] = ()
    statistics: list[tuple[float, float, float]] = field(default_factory=lambda: [_NOT_A_NUMBER] * 3)
    checksums: list[str | None] = field(default_factory=lambda: [None] * 3)

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.path.split(".")) if self.path else ()

    @property
    def module(self) -> tuple[str, str]:
        return self.path, self.class_name

    @property
    def kind(self) -> tuple[str, str] | None:
        """Kind of layer; a class that only contains a layer's name counts where it computes something itself."""
        return kind_of(self.class_name, exact=bool(self.children) and not self.parameters)

    @property
    def largest_parameter(self) -> Shape:
        """Dimensions, sorted, of the parameter with the most elements; () without one."""
        return max(self.parameters or ((),), key=math.prod)

    @property
    def is_layer(self) -> bool:
        """Whether it takes part in the sequence of layers: leaves, known layers and what owns parameters.

        What encloses all others is none of them.
        """
        return not self.children or (bool(self.path) and (bool(self.parameters) or self.kind is not None))


@dataclass
class Outline:
    """The modules of one dump.

    ``layers``   numbers of the nodes that are layers, in the order they computed: one that calls others before or after
                 these
    ``statistics``  float32 (nodes, 3 tensors, 3 statistics); NaN where nothing is recorded
    ``weighty``  nodes that have parameters, themselves or below them
    """

    nodes: list[Node]
    layers: list[int]
    statistics: NDArray[np.float32]
    has_parameters: bool
    weighty: set[int] = field(default_factory=set)

    @cached_property
    def containers(self) -> Mapping[str, Sequence[int]]:
        """Numbers of the nodes that enclose others, by class."""
        found: dict[str, list[int]] = {}
        for number, node in enumerate(self.nodes):
            if node.children:
                found.setdefault(node.class_name, []).append(number)
        return found

    def passes_on(self, number: int) -> bool:
        """Whether a node gives out what it takes in: who made it, is not told by that."""
        return bool((self.statistics[number, INPUT] == self.statistics[number, OUTPUT]).all())

    def ancestors(self, number: int) -> Iterator[int]:
        """From the parent up towards the top, so far as real nets are nested."""
        number = self.nodes[number].parent
        for _ in range(_DEEPEST):
            if number < 0:
                return
            yield number
            number = self.nodes[number].parent


def outline(dump: Dump, *, rooted: bool = True) -> Outline:
    """One pass over the dump's entries. Where no forward was recorded the backward tells order and shapes.

    Without ``rooted`` the model itself is left out.
    """
    nodes: dict[tuple[str, str], Node] = {}
    forward = any(entry.parsed and entry.parsed.is_module and entry.parsed.direction == FORWARD
                  for entry in dump.entries.values())  # fmt: skip
    told = FORWARD if forward else BACKWARD
    for place, entry in enumerate(dump.entries.values()):
        parsed = entry.parsed
        parent = parse_entry(entry.parent) if entry.parent else None
        if parent is not None and _takes_part(parent, rooted=rooted):
            _node(nodes, parent)
        if parsed is None or not _takes_part(parsed, rooted=rooted):
            continue
        node = _node(nodes, parsed)
        if parsed.direction == told and not entry.recomputed:
            node.calls += 1
            if forward and node.rank < 0:
                node.rank = place
                _describe(node, entry.items)
            elif not forward:  # backward runs the other way round: what ends last began first
                node.rank = len(dump.entries) - place
                _describe(node, entry.items)
        elif parsed.direction == PARAMETERS_GRAD and node.parameters is None:
            node.parameters = _parameter_shapes(entry.items) or None
    return _assembled(list(nodes.values()))


def _takes_part(parsed: EntryName, *, rooted: bool) -> bool:
    """Whether it is a module that can be aligned; what lies deeper than any net keeps its name."""
    return parsed.is_module and (rooted or not parsed.is_root) and parsed.name.count(".") < _MOST_PARTS


def _node(nodes: dict[tuple[str, str], Node], parsed: EntryName) -> Node:
    key = (parsed.name, parsed.class_name)
    if key not in nodes:
        nodes[key] = Node(*key)
    return nodes[key]


def _describe(node: Node, items: Iterable[Item]) -> None:
    """Shapes and statistics of the first tensor in, the first out and the parameter that tells most."""
    best: tuple[bool, int, float] | None = None
    shapes = []
    for item in items:
        if item.kind != "tensor" or not isinstance(item.shape, tuple):
            continue
        if item.state == "input" and node.input is None:
            node.input = item.shape
            _note(node, INPUT, item)
        elif item.state == "output" and node.output is None:
            node.output = item.shape
            _note(node, OUTPUT, item)
        elif item.state == "parameters" and not item.path[-1].startswith(_RUNNING):
            shapes.append(_sorted_axes(item.shape))
            norm, maximum, minimum = _statistics(item)
            telling = (maximum != minimum, math.prod(item.shape), norm if norm == norm else 0.0)
            if best is None or telling > best:
                best = telling
                _note(node, PARAMETER, item)
    if shapes:
        node.parameters = tuple(sorted(shapes))


def _parameter_shapes(items: Iterable[Item]) -> tuple[Shape, ...]:
    return tuple(sorted(_sorted_axes(item.shape) for item in items if isinstance(item.shape, tuple)))


def _sorted_axes(shape: Shape) -> Shape:
    """The dimensions in ascending order, but for those of 1: a 1 × 1 convolution has the weight of a dense layer."""
    return tuple(sorted(each for each in shape if each != 1))


def _note(node: Node, which: int, item: Item) -> None:
    node.statistics[which] = _statistics(item)
    node.checksums[which] = item.md5


def _statistics(item: Item) -> tuple[float, float, float]:
    """(norm, maximum, minimum); integers may come without a norm."""
    told = (item.maximum, item.minimum, item.norm)
    maximum, minimum, norm = (float(value) if isinstance(value, int | float) else math.nan for value in told)
    if norm != norm:
        norm = max(abs(maximum), abs(minimum))
    return norm, maximum, minimum


def _computes_first(nodes: list[Node], number: int) -> bool:
    """Whether a layer hands to what it calls another tensor than it was given: a norm that activates afterwards."""
    children = nodes[number].children
    if not children:
        return False
    given, handed_on = nodes[number].statistics[INPUT], nodes[children[0]].statistics[INPUT]
    return given == given and handed_on == handed_on and given != handed_on


def _began(nodes: list[Node], number: int) -> float:
    """A place before all that a layer calls."""
    while nodes[number].children:
        number = nodes[number].children[0]
    return nodes[number].rank - 0.5


def _assembled(nodes: list[Node]) -> Outline:
    """The tree, and the layers in the order they ran."""
    places: dict[tuple[str, ...], int] = {}
    for number, node in enumerate(nodes):
        places.setdefault(node.parts, number)
    for number, node in enumerate(nodes):
        parts = node.parts
        above = (places.get(parts[:length]) for length in range(len(parts) - 1, -1, -1)) if parts else iter(())
        node.parent = next((place for place in above if place is not None and place != number), -1)
        if node.parent >= 0:
            nodes[node.parent].children.append(number)
    # What never ran, and holds nothing that did, makes no inner module of its parent, but weights of it.
    for node in nodes:
        if node.rank < 0 and node.parameters and node.parent >= 0 and not node.children:
            nodes[node.parent].held += node.parameters
    for node in nodes:
        node.children = [child for child in node.children if nodes[child].rank >= 0 or nodes[child].children]
        node.children.sort(key=lambda child: nodes[child].rank)
    layers = [number for number, node in enumerate(nodes) if node.rank >= 0 and node.is_layer]
    layers.sort(key=lambda number: _began(nodes, number) if _computes_first(nodes, number) else nodes[number].rank)
    statistics = np.array([node.statistics for node in nodes], np.float64).reshape(-1, 3, 3)
    # What has overflowed is like anything else that has.
    statistics[~(np.abs(statistics) < np.finfo(np.float32).max)] = np.nan
    made = Outline(nodes, layers, statistics.astype(np.float32), any(node.parameters for node in nodes))
    for number, node in enumerate(nodes):
        if node.parameters:
            made.weighty.add(number)
            made.weighty.update(made.ancestors(number))
    return made
