"""Gradients of single calls, read from PyTorch's graph without changing it.

A call's inputs are used by some nodes of the graph that the call built: its *consumers*. What flows out of them towards
an input is the gradient this call sends it. Hooks on those nodes read it; nothing is inserted, so tensors keep their
identity, autograd sums gradients in its own order, and every bit stays as it was.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import torch

from msprobe_ms.frameworks.base import InputWatch, OnGradients

#: An end of an edge in the graph: a node and which of its forward results.
Edge = tuple[Any, int]

# Taken before anything is wrapped.
_view_as = torch.Tensor.view_as
_add = torch.Tensor.add
_queue_callback = torch.autograd.Variable._execution_engine.queue_callback


class ConsumerWatch(InputWatch):
    """Watches the arguments of one call; they are handed on as they are.

    ``bounded``: the call may also reach older parts of the graph that are no arguments of it (a state that a module
    keeps); the search for consumers ends there.
    """

    def __init__(self, tensors: Sequence[Any], on_gradients: OnGradients, *, bounded: bool) -> None:
        super().__init__(tensors)
        self._on_gradients = on_gradients
        # A leaf's end of its edges can only be had from a node that uses it.
        views = [_view_as(t, t) if t.grad_fn is None else None for t in tensors]
        self._edges: list[Edge] = [
            (tensor.grad_fn, tensor.output_nr) if view is None else view.grad_fn.next_functions[0]
            for tensor, view in zip(tensors, views, strict=True)
        ]
        self._floor = -1
        if bounded:
            newest = next((view for view in reversed(views) if view is not None), None)
            node = (_view_as(tensors[0], tensors[0]) if newest is None else newest).grad_fn
            self._floor = _number(node, -1)

    def settle(self, outputs: Sequence[Any]) -> None:
        slots: dict[Edge, list[int]] = {}
        for slot, edge in enumerate(self._edges):
            slots.setdefault(edge, []).append(slot)
        roots = {(t.grad_fn, t.output_nr): t for t in outputs if t.grad_fn is not None}
        # What was written in place has moved on to a node of the call.
        for tensor, edge in zip(self.tensors, self._edges, strict=True):
            if tensor.grad_fn is not None and tensor.grad_fn is not edge[0]:
                roots.setdefault((tensor.grad_fn, tensor.output_nr), tensor)
        consumers = _consumers([node for node, _ in roots if node is not None], slots, self._floor)
        handed_through = [(tensor, slots[edge]) for edge, tensor in roots.items() if edge in slots]
        gathering = _Gathering(len(self.tensors), len(consumers) + len(handed_through), self._on_gradients)
        for node, places in consumers:
            node.register_hook(gathering.from_node(places))
        for tensor, same in handed_through:
            tensor.register_hook(gathering.from_tensor(same))
        self._edges = []


def _consumers(roots: list[Any], slots: dict[Edge, list[int]], floor: int) -> list[tuple[Any, list[tuple[int, int]]]]:
    """The nodes between ``roots`` and the watched edges that use them, with ``(position among its inputs, slot)``."""
    found: list[tuple[Any, list[tuple[int, int]]]] = []
    watched = {node for node, _ in slots}
    waiting = [node for node in dict.fromkeys(roots) if node not in watched and _number(node, floor + 1) > floor]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        places: list[tuple[int, int]] = []
        for position, edge in enumerate(node.next_functions):
            if (hits := slots.get(edge)) is not None:
                places += [(position, slot) for slot in hits]
                continue
            older = edge[0]
            if older is not None and older not in seen and _number(older, floor + 1) > floor:
                seen.add(older)
                waiting.append(older)
        if places:
            found.append((node, places))
    return found


def _number(node: Any, unknown: int) -> int:
    """A node's place in the order of creation on its thread; older releases do not tell it of every node."""
    number = getattr(node, "_sequence_nr", None)
    return unknown if number is None else number()


class _Gathering:
    """Sums the contributions to a call's inputs and reports them when the last has come, or backward ends without it.

    Holds no node of the graph: a node's hook that held the node would keep the whole graph alive.
    """

    def __init__(self, slots: int, expected: int, on_gradients: OnGradients) -> None:
        self._slots = slots
        self._expected = expected
        self._on_gradients = on_gradients
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._sums: list[Any] = [None] * self._slots
        self._arrived = 0

    def from_node(self, places: list[tuple[int, int]]) -> Any:
        def hook(grad_inputs: Sequence[Any], _: Sequence[Any]) -> None:
            self._arrive([(slot, grad_inputs[position]) for position, slot in places])

        return hook

    def from_tensor(self, slots: list[int]) -> Any:
        def hook(gradient: Any) -> None:
            self._arrive([(slot, gradient) for slot in slots])

        return hook

    def _arrive(self, contributions: list[tuple[int, Any]]) -> None:
        with self._lock:
            for slot, gradient in contributions:
                self._sums[slot] = _sum(self._sums[slot], gradient)
            self._arrived += 1
            complete, first = self._arrived == self._expected, self._arrived == 1
        if complete:
            self._report()
        elif first:
            # Parts of the call may take no part in this backward, and nobody says so.
            _queue_callback(self._report)

    def _report(self) -> None:
        with self._lock:
            sums, arrived = self._sums, self._arrived
            self._clear()
        if arrived:
            self._on_gradients(sums)


def _sum(total: Any, gradient: Any) -> Any:
    if total is None or gradient is None:
        return gradient if total is None else total
    if total.is_sparse and not gradient.is_sparse:
        total, gradient = gradient, total  # the order PyTorch can add
    with torch.no_grad():
        return _add(total, gradient)


def watch_outputs(tensors: Sequence[Any], on_gradients: OnGradients) -> None:
    """Hook a call's results. Reports whenever the gradients of the results of one node have come."""
    nodes: dict[Any, list[int]] = {}
    for slot, tensor in enumerate(tensors):
        if tensor.grad_fn is not None:  # a leaf given back is not the call's result
            nodes.setdefault(tensor.grad_fn, []).append(slot)
    reports = _OutputReports(len(tensors), len(nodes), on_gradients)
    for node, slots in nodes.items():
        if len(slots) == 1:
            tensors[slots[0]].register_hook(reports.from_tensor(slots[0]))
        else:
            node.register_prehook(reports.from_node([(tensors[slot].output_nr, slot) for slot in slots]))


class _OutputReports:
    """The gradients of a call's results, as they come; forgotten when those of all ``nodes`` have."""

    def __init__(self, slots: int, nodes: int, on_gradients: OnGradients) -> None:
        self._nodes = nodes
        self._on_gradients = on_gradients
        self._gradients: list[Any] = [None] * slots
        self._arrived = 0

    def from_tensor(self, slot: int) -> Any:
        def hook(gradient: Any) -> None:
            self._arrive([(slot, gradient)])

        return hook

    def from_node(self, places: list[tuple[int, int]]) -> Any:
        def hook(grad_outputs: Sequence[Any]) -> None:
            self._arrive([(slot, grad_outputs[number]) for number, slot in places])

        return hook

    def _arrive(self, gradients: list[tuple[int, Any]]) -> None:
        for slot, gradient in gradients:
            self._gradients[slot] = gradient
        self._on_gradients(list(self._gradients))
        self._arrived += 1
        if self._arrived == self._nodes:
            self._gradients, self._arrived = [None] * len(self._gradients), 0
