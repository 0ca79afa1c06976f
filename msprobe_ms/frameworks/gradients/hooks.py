"""Hooks that read the gradients of single calls from a framework's gradient graph (`gradients.graph`).

Each is one object, without functions made for it: a step makes thousands, and what survives the search for cycles among
young objects brings that among all objects of the process nearer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from msprobe_ms.frameworks.interface.gradients import OnGradients, OnInputGradients

if TYPE_CHECKING:
    from msprobe_ms.frameworks.gradients.graph import Graph, InnerUses

#: Gives the part of a gradient that belongs to a view.
Part = Callable[[Any], Any]
#: The position of a watched tensor, and which part of a gradient is its own; None for the whole.
Slot = tuple[int, Part | None]
#: Where among what a node sends back the gradient of a slot is.
Places = list[tuple[int, Slot]]


def _sent_back(places: Places, grad_inputs: Sequence[Any]) -> list[tuple[int, Any]]:
    """The slots and their gradients among what a node sends back."""
    came = [(slot, part, grad_inputs[position]) for position, (slot, part) in places]
    return [(slot, g if part is None or g is None else part(g)) for slot, part, g in came]


def _add(graph: Graph, sums: list[Any], contributions: Iterable[tuple[int, Any]]) -> None:
    for slot, gradient in contributions:
        total = sums[slot]
        if total is None or gradient is None:
            sums[slot] = gradient if total is None else total
        else:
            sums[slot] = graph.add(total, gradient)


class SoleUse:
    """On the one node that uses the inputs of a call: reports what it sends back to each of ``slots`` inputs."""

    __slots__ = ("_graph", "_on_gradients", "_places", "_slots")

    def __init__(self, graph: Graph, slots: int, on_gradients: OnInputGradients, places: Places) -> None:
        self._graph = graph
        self._slots = slots
        self._on_gradients = on_gradients
        self._places = places

    def __call__(self, grad_inputs: Sequence[Any], _: Sequence[Any]) -> None:
        try:
            sums: list[Any] = [None] * self._slots
            _add(self._graph, sums, _sent_back(self._places, grad_inputs))
            self._on_gradients(sums)
        except Exception as error:  # the framework would end the backward
            self._on_gradients(error)


class Gathering:
    """Sums the contributions to a call's inputs and reports them when the last has come, or backward ends without it.

    Holds no node of the graph: a node's hook that held the node would keep the whole graph alive.
    """

    __slots__ = ("_arrived", "_expected", "_graph", "_lock", "_slots", "_sums", "on_gradients")

    def __init__(self, graph: Graph, slots: int, on_gradients: OnInputGradients, expected: int) -> None:
        self._graph = graph
        self._slots = slots
        self._expected = expected
        self.on_gradients = on_gradients
        self._lock = threading.RLock()  # a signal handler may end the recording meanwhile
        self._clear()

    def _clear(self) -> None:
        self._sums: list[Any] = [None] * self._slots
        self._arrived = 0

    def arrive(self, contributions: list[tuple[int, Any]]) -> None:
        """Take in what one node or tensor sends back: slots and their gradients."""
        with self._lock:
            _add(self._graph, self._sums, contributions)
            self._arrived += 1
            complete, first = self._arrived == self._expected, self._arrived == 1
        if self._expected > 1:
            self.on_gradients(None)
        if complete:
            self._report()
        elif first:
            # Parts of the call may take no part in this backward, and nobody says so.
            self._graph.when_backward_ends(self._report)

    def _report(self) -> None:
        try:
            with self._lock:
                sums, arrived = self._sums, self._arrived
                self._clear()
            if arrived:
                self.on_gradients(sums)
        except Exception as error:
            self.on_gradients(error)


class OneUse:
    """On one of several nodes that use the inputs of a call."""

    __slots__ = ("_gathering", "_places")

    def __init__(self, gathering: Gathering, places: Places) -> None:
        self._gathering = gathering
        self._places = places

    def __call__(self, grad_inputs: Sequence[Any], _: Sequence[Any]) -> None:
        try:
            self._gathering.arrive(_sent_back(self._places, grad_inputs))
        except Exception as error:
            self._gathering.on_gradients(error)


class HandedThrough:
    """On an input that is a result as well, whose gradient belongs to ``slots``."""

    def __init__(self, gathering: Gathering, slots: list[int]) -> None:
        self._gathering = gathering
        self._slots = slots

    def __call__(self, gradient: Any) -> None:
        try:
            self._gathering.arrive([(slot, _sound(gradient)) for slot in self._slots])
        except Exception as error:
            self._gathering.on_gradients(error)


class Result:
    """On a result of a call, which is one of ``slots``. Of these none is held: those of others may never come."""

    def __init__(self, slots: int, inner: InnerUses | None, on_gradients: OnGradients, slot: int) -> None:
        self._slots = slots
        self._inner = inner
        self._on_gradients = on_gradients
        self._slot = slot

    def __call__(self, gradient: Any) -> None:
        try:
            _report_results(self._slots, self._inner, self._on_gradients, [(self._slot, _sound(gradient))])
        except Exception as error:
            self._on_gradients(error)


class Results:
    """The same on a node that made several results: ``places`` are the numbers they have there, and their slots."""

    __slots__ = ("_inner", "_on_gradients", "_places", "_slots")

    def __init__(
        self, slots: int, inner: InnerUses | None, on_gradients: OnGradients, places: list[tuple[int, int]]
    ) -> None:
        self._slots = slots
        self._inner = inner
        self._on_gradients = on_gradients
        self._places = places

    def __call__(self, grad_outputs: Sequence[Any]) -> None:
        try:
            came = [(slot, grad_outputs[number]) for number, slot in self._places]
            _report_results(self._slots, self._inner, self._on_gradients, came)
        except Exception as error:
            self._on_gradients(error)


def _report_results(
    slots: int, inner: InnerUses | None, on_gradients: OnGradients, came: list[tuple[int, Any]]
) -> None:
    arrived: list[Any] = [None] * slots
    for slot, gradient in came:
        arrived[slot] = gradient if inner is None else inner.taken_off(slot, gradient)
    on_gradients(arrived)


def _sound(gradient: Any) -> Any:
    """The gradient; raises what came in its place."""
    if isinstance(gradient, Exception):
        raise gradient
    return gradient
