"""Gradients of single calls, read from a framework's gradient graph without changing it.

A call's inputs are used by some nodes of the graph that the call built: its *consumers*. What flows out of them towards
an input is the gradient this call sends it. Hooks on those nodes read it; nothing is inserted, so tensors keep their
identity, the framework sums gradients in its own order, and every bit stays as it was.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from msprobe_ms.frameworks.gradients.hooks import (
    Gathering,
    HandedThrough,
    OneUse,
    Part,
    Places,
    Result,
    Results,
    Slot,
    SoleUse,
)
from msprobe_ms.frameworks.interface.gradients import InputWatch, OnGradients, OnInputGradients
from msprobe_ms.frameworks.interface.kernels import NodeObserver
from msprobe_ms.support.patching import Hooks, install, remove

#: A node of the graph and which of its forward results is meant.
Edge = tuple[Any, int]
#: The same with the node's key in place of the node.
EdgeKey = tuple[Hashable, int]

#: ``hook(grad_inputs, grad_outputs)`` of a node, ``hook(grad_outputs)`` before it runs, ``hook(gradient)`` of a tensor.
NodeHook = Callable[[Sequence[Any], Sequence[Any]], None]
BeforeHook = Callable[[Sequence[Any]], None]


class Graph(ABC):
    """What the watches need to know of a framework's gradient graph."""

    #: The class of parameters, which are leaves.
    parameter: type

    def __init__(self) -> None:
        #: Hooks that stay with the script's own tensors until they are taken off.
        self._on_leaves: list[Hooks] = []

    @abstractmethod
    def edge(self, tensor: Any) -> Edge | None:
        """The node that made the tensor; None for a leaf and where no gradient flows."""

    @abstractmethod
    def edges(self, tensors: Sequence[Any], *, bounded: bool) -> tuple[list[Edge], int]:
        """Where tensors hang, leaves included, and the number up to which nodes are older than the coming call.

        Only a ``bounded`` call may reach older parts of the graph that are no arguments of it (a state that a module
        keeps); for others the number is -1.
        """

    @abstractmethod
    def key(self, node: Any) -> Hashable:
        """The same for every object that stands for the node."""

    @abstractmethod
    def name(self, node: Any) -> str:
        """What the node undoes: ``BiasAdd``."""

    @abstractmethod
    def is_leaf(self, node: Any) -> bool:
        """Whether the node only gathers a tensor's gradient."""

    @abstractmethod
    def number(self, node: Any, unknown: int) -> int:
        """The node's place in the order of creation; ``unknown`` where the framework does not tell."""

    @abstractmethod
    def hook_node(self, node: Any, hook: NodeHook) -> None: ...

    @abstractmethod
    def hook_before(self, node: Any, hook: BeforeHook) -> None: ...

    def hook_tensor(self, tensor: Any, hook: Callable[[Any], None]) -> None:
        """Tell ``hook`` the tensor's gradient, or why it cannot be told; of a leaf until `leave_leaves`."""
        if self.edge(tensor) is None:
            install([self.hook_leaf(tensor, hook)], self._on_leaves)
        else:
            self.hook_result(tensor, hook)

    @abstractmethod
    def hook_leaf(self, tensor: Any, hook: Callable[[Any], None]) -> Hooks: ...

    @abstractmethod
    def hook_result(self, tensor: Any, hook: Callable[[Any], None]) -> None: ...

    def leave_leaves(self) -> None:
        """Take every hook off leaves."""
        remove(self._on_leaves)

    def viewed(self, tensor: Any) -> tuple[Edge, Part] | None:
        """Of a view: where the tensor hangs that it shows, and what gives the view's part of that one's gradient.

        When a view is written in place, its gradient comes no more by the node that made it. None where there is no
        such, or no gradient flows.
        """
        return None

    @abstractmethod
    def add(self, total: Any, gradient: Any) -> Any:
        """The sum of two gradients, outside of any graph."""

    @abstractmethod
    def without(self, total: Any, part: Any) -> Any:
        """What remains of a sum of gradients without ``part``, outside of any graph; None where it is but rounding."""

    @abstractmethod
    def when_backward_ends(self, report: Callable[[], None]) -> None:
        """Call ``report`` once the running backward pass is over."""


class ConsumerWatch(InputWatch):
    """Watches the arguments of one call; they are handed on as they are."""

    def __init__(self, graph: Graph, tensors: Sequence[Any], on_gradients: OnInputGradients, *, bounded: bool) -> None:
        super().__init__(tensors)
        self._graph = graph
        self._on_gradients = on_gradients
        self._edges, self.floor = graph.edges(tensors, bounded=bounded)
        self._viewed = [graph.viewed(tensor) for tensor in tensors]
        # A function that hands a parameter on, as a conversion that converts nothing, has no result of its own.
        self._leaves = {
            id(tensor): edge
            for tensor, edge in zip(tensors, self._edges, strict=True)
            if graph.edge(tensor) is None and (bounded or not issubclass(type(tensor), graph.parameter))
        }

    def edge(self, result: Any) -> Edge | None:
        """Where a result of the call hangs; None for a leaf that is no argument."""
        return self._graph.edge(result) or self._leaves.get(id(result))

    def settle(self, outputs: Sequence[Any]) -> None:
        graph = self._graph
        slots: dict[EdgeKey, list[Slot]] = {}
        for slot, (node, number) in enumerate(self._edges):
            slots.setdefault((graph.key(node), number), []).append((slot, None))
        roots = {(graph.key(edge[0]), edge[1]): (edge[0], t) for t in outputs if (edge := self.edge(t)) is not None}
        # The gradient of an argument that is a result as well has in it what the call's own uses of it send back.
        handed_through = [
            (tensor, [slot for slot, _ in slots[key]]) for key, (_, tensor) in roots.items() if key in slots
        ]
        slots |= {key: [] for key in roots.keys() & slots.keys()}
        nodes = [node for node, _ in roots.values()]
        # What was written in place has moved on to a node of the call.
        for slot, (tensor, (old, _)) in enumerate(zip(self.tensors, self._edges, strict=True)):
            edge, viewed = graph.edge(tensor), self._viewed[slot]
            if edge is not None and graph.key(edge[0]) != graph.key(old):
                nodes.append(edge[0])
                if viewed is not None:
                    (node, number), part = viewed
                    slots.setdefault((graph.key(node), number), []).append((slot, part))
        consumers = _consumers(graph, nodes, slots, self.floor)
        if len(consumers) == 1 and not handed_through:
            node, places = consumers[0]
            graph.hook_node(node, SoleUse(graph, len(self.tensors), self._on_gradients, places))
        else:
            expected = len(consumers) + len(handed_through)
            gathering = Gathering(graph, len(self.tensors), self._on_gradients, expected)
            for consumer, places in consumers:
                graph.hook_node(consumer, OneUse(gathering, places))
            for tensor, same in handed_through:
                graph.hook_tensor(tensor, HandedThrough(gathering, same))
        self._edges, self._viewed = [], []


def _consumers(
    graph: Graph, roots: list[Any], slots: dict[EdgeKey, list[Slot]], floor: int
) -> list[tuple[Any, Places]]:
    """The nodes between ``roots`` and the watched edges that use them, with ``(position among its inputs, slot)``."""
    found: list[tuple[Any, Places]] = []
    seen = {key for key, _ in slots}
    #: Nodes and what they send gradients to, which is asked for once: frameworks make it anew each time.
    waiting: list[tuple[Any, Sequence[tuple[Any, int]]]] = []

    key_of, number = graph.key, graph.number

    def meet(node: Any) -> None:
        key = key_of(node)
        if key not in seen:
            seen.add(key)
            if (floor < 0 or number(node, floor + 1) > floor) and (following := node.next_functions):
                waiting.append((node, following))

    for root in roots:
        meet(root)
    while waiting:
        node, following = waiting.pop()
        places: Places = []
        for position, (older, place) in enumerate(following):
            if older is None:
                continue
            hits = slots.get((key_of(older), place))
            if hits is None:
                meet(older)
            else:
                places += [(position, slot) for slot in hits]
        if places:
            found.append((node, places))
    return found


def watch_outputs(
    graph: Graph, tensors: Sequence[Any], on_gradients: OnGradients, inputs: ConsumerWatch | None
) -> None:
    """Hook a call's results. Reports whenever the gradients of the results of one node have come.

    What the call itself made of a result (weights of an attention that it returns as well) sends no gradient to the
    *call*: it is taken off. ``inputs`` is the watch on the call's arguments, if there was any.
    """
    nodes: dict[Hashable, list[int]] = {}
    edges = [graph.edge(tensor) if inputs is None else inputs.edge(tensor) for tensor in tensors]
    for slot, edge in enumerate(edges):
        if edge is not None:  # a leaf that was no argument is not the call's result
            nodes.setdefault(graph.key(edge[0]), []).append(slot)
    inner = InnerUses(graph, edges, on_gradients, -1 if inputs is None else inputs.floor) if len(nodes) > 1 else None
    for slots in nodes.values():
        if len(slots) == 1:
            graph.hook_tensor(tensors[slots[0]], Result(len(tensors), inner, on_gradients, slots[0]))
        else:
            places = [(edge[1], slot) for slot in slots if (edge := edges[slot]) is not None]
            first = edges[slots[0]]
            assert first is not None
            graph.hook_before(first[0], Results(len(tensors), inner, on_gradients, places))


class InnerUses:
    """What flows back into a call's results from the call's own further use of them."""

    def __init__(self, graph: Graph, edges: Sequence[Edge | None], on_gradients: OnGradients, floor: int) -> None:
        self._graph = graph
        self.on_gradients = on_gradients
        self._sums: dict[int, Any] = {}
        slots: dict[EdgeKey, list[int]] = {}
        for slot, edge in enumerate(edges):
            if edge is not None:
                slots.setdefault((graph.key(edge[0]), edge[1]), []).append(slot)
        roots = [edge[0] for edge in edges if edge is not None]
        # Who uses a result is newer than it, and no older than the call: what layer after layer only hands on is not
        # looked for in all of them before.
        oldest = max(min(-1 if graph.is_leaf(root) else graph.number(root, -1) for root in roots), floor)
        waiting = [root for root in roots if graph.number(root, floor + 1) > floor]
        seen = {graph.key(root) for root in roots}
        while waiting:
            node = waiting.pop()
            places: list[tuple[int, int]] = []
            for position, (older, number) in enumerate(node.next_functions):
                if older is None:
                    continue
                key = graph.key(older)
                places += [(position, slot) for slot in slots.get((key, number), ())]
                if key not in seen and graph.number(older, oldest + 1) > oldest and not graph.is_leaf(older):
                    seen.add(key)
                    waiting.append(older)
            if places:
                graph.hook_node(node, _InnerUse(self, places))

    def taken_off(self, slot: int, gradient: Any) -> Any:
        """``gradient`` of a result without what came from inside, which is forgotten."""
        inner = self._sums.pop(slot, None)
        return gradient if inner is None or gradient is None else self._graph.without(gradient, inner)

    def add(self, slot: int, gradient: Any) -> None:
        """Take in what flows back into a result."""
        total = self._sums.get(slot)
        self._sums[slot] = gradient if total is None else self._graph.add(total, gradient)


class _InnerUse:
    """On a node of the call that uses results: ``(position among its inputs, slot)``."""

    __slots__ = ("_places", "_uses")

    def __init__(self, uses: InnerUses, places: list[tuple[int, int]]) -> None:
        self._uses = uses
        self._places = places

    def __call__(self, grad_inputs: Sequence[Any], _: Sequence[Any]) -> None:
        try:
            for position, slot in self._places:
                if (gradient := grad_inputs[position]) is not None:
                    self._uses.add(slot, gradient)
        except Exception as error:
            self._uses.on_gradients(error)


def observe_nodes(
    graph: Graph, tensors: Sequence[Any], known: set[Hashable], observer: Callable[[str], NodeObserver | None]
) -> None:
    """Hook every node behind ``tensors`` that is not in ``known``, and add it there."""
    waiting = [edge[0] for tensor in tensors if (edge := graph.edge(tensor)) is not None]
    while waiting:
        node = waiting.pop()
        # A node's place in memory may be another's before.
        key = graph.key(node), graph.number(node, -1)
        if key in known or graph.is_leaf(node):
            continue
        known.add(key)
        told = observer(graph.name(node))
        if told is not None:
            graph.hook_before(node, told.begins)
            graph.hook_node(node, told.ends)
        waiting += [older for older, _ in node.next_functions if older is not None]
