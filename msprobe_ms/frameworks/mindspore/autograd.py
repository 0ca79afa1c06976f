"""Gradients of single calls in MindSpore: its gradient graph (2.8 and later), as the watches see it.

MindSpore does not show its graph before; there nodes of our own stand on the tensors.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any

from mindspore import Parameter, Tensor, _c_expression, ops
from mindspore.ops.composite import base

from msprobe_ms.frameworks.gradients.graph import BeforeHook, Edge, Graph, NodeHook
from msprobe_ms.frameworks.interface.gradients import InputWatch, OnGradients, OnRoots
from msprobe_ms.frameworks.mindspore import arrays, device_statistics
from msprobe_ms.frameworks.mindspore.modes import unseen
from msprobe_ms.frameworks.own_hooks import Registered, telling
from msprobe_ms.support.patching import Hooks

# Taken before anything is wrapped; beneath it is no primitive that could be.
_add = Tensor.__add__


def has_graph() -> bool:
    """Whether this MindSpore shows its gradient graph; 2.7 shows nodes, but not which of them are the same."""
    nodes = getattr(_c_expression, "BackwardNodePy", None)
    return hasattr(Tensor, "_grad_node") and hasattr(Tensor, "_output_index") and hasattr(nodes, "_unique_id")


class MindSporeGraph(Graph):
    """Nodes are made anew each time they are asked for; their number in memory tells which is which."""

    parameter = Parameter

    def __init__(self) -> None:
        super().__init__()
        #: What threads have to report once the backward they run is over.
        self._waiting: defaultdict[int, list[Callable[[], None]]] = defaultdict(list)

    def edge(self, tensor: Any) -> Edge | None:
        node = tensor._grad_node
        return None if node is None or node.is_leaf() else (node, tensor._output_index)

    def edges(self, tensors: Sequence[Any], *, bounded: bool) -> tuple[list[Edge], int]:
        edges = [(tensor._grad_node, tensor._output_index) for tensor in tensors]
        # Nothing says which node is the newest; the call's own are newer than its inputs, which is bound enough.
        older = [node._sequence_nr() for node, _ in edges if not node.is_leaf()] if bounded else []
        return edges, max(older, default=-1)

    # Called a thousand times a step: without frames of Python of their own.
    key = staticmethod(methodcaller("_unique_id"))  # type: ignore[assignment]
    is_leaf = staticmethod(methodcaller("is_leaf"))  # type: ignore[assignment]

    def name(self, node: Any) -> str:
        return str(node.name())

    def number(self, node: Any, unknown: int) -> int:
        return node._sequence_nr()

    def hook_node(self, node: Any, hook: NodeHook) -> None:
        node.register_hook(hook)

    def hook_before(self, node: Any, hook: BeforeHook) -> None:
        node.register_prehook(hook)

    def hook_leaf(self, tensor: Any, hook: Callable[[Any], None]) -> Hooks:
        return Registered((tensor.register_hook, telling(hook)))  # the framework takes plain functions

    def hook_result(self, tensor: Any, hook: Callable[[Any], None]) -> None:
        # A hook on the tensor itself would stay with it beyond this graph.
        tensor._grad_node.register_prehook(_OneResult(hook, tensor._output_index))

    def add(self, total: Any, gradient: Any) -> Any:
        if not device_statistics.is_there() and (added := arrays.total(total, gradient)) is not None:
            return added
        with unseen():
            return _add(total, gradient)

    def without(self, total: Any, part: Any) -> Any:
        with unseen():
            return arrays.difference(total, part)

    def when_backward_ends(self, report: Callable[[], None]) -> None:
        # The engine tells nobody; `backward_ended` is called when the next call begins, and when recording stops.
        self._waiting[threading.get_ident()].append(report)

    def backward_ended(self, *, everywhere: bool) -> None:
        """Report what came of gradients that will not be complete any more, of this thread's backward or of any."""
        for thread in list(self._waiting) if everywhere else [threading.get_ident()]:
            for report in self._waiting.pop(thread, ()):
                report()


class _OneResult:
    """Tells ``hook`` of one of the gradients that a node is given."""

    __slots__ = ("_hook", "_number")

    def __init__(self, hook: Callable[[Any], None], number: int) -> None:
        self._hook = hook
        self._number = number

    def __call__(self, gradients: Sequence[Any]) -> None:
        try:
            self._hook(gradients[self._number])
        except Exception as error:  # of the call itself, where the stack ends
            self._hook(error)


class Hooked(InputWatch):
    """Tensors that stand on a node of their own in the gradient graph, which reports what flows through it.

    They are the very tensors that were given: another object in their place would change what `is`, views and writes in
    place do in the user's code. A twin stands in for a leaf, by which the framework finds gradients, and for a tensor
    that was written in place, whose version the framework checks.
    """

    def __init__(self, tensors: Sequence[Any], on_gradients: OnGradients) -> None:
        super().__init__(tensors)
        #: The tensors that have twins, and the others with what they stood on before.
        self._twins: list[tuple[Any, Any]] = []
        self._moved: list[tuple[Any, Any]] = []
        self.tensors = [self._move(*pair) for pair in zip(tensors, _hook(tensors, on_gradients), strict=True)]

    def _move(self, tensor: Any, hooked: Any) -> Any:
        if not _is_hooked(hooked):
            return tensor  # gradients are switched off, as in the first run of a recomputed cell
        if getattr(tensor, "_is_leaf", True) or _version(tensor):
            # As MindSpore links a view to its tensor: what is written into a part of the twin reaches the tensor.
            hooked.parent_tensor_, hooked.index_of_parent_ = tensor, ...
            self._twins.append((tensor, hooked))
            return hooked
        self._moved.append((tensor, Tensor(tensor)))
        return tensor.assign_value(hooked)

    def settle(self, outputs: Sequence[Any]) -> None:
        """Put the tensors back where they stood, unless the call wrote into them or handed them on."""
        handed_on = {id(tensor) for tensor in outputs}
        for tensor, before in self._moved:
            if _is_hooked(tensor) and not _version(tensor) and id(tensor) not in handed_on:
                tensor.assign_value(before)
        for tensor, twin in self._twins:
            if not _is_hooked(twin):
                tensor.assign_value(twin)


def can_be_hooked() -> bool:
    """Whether hooks do no harm here: MindSpore cannot take the gradient of a gradient through one."""
    levels, frame = 0, sys._getframe(1)
    while frame is not None and levels < 2:
        levels += frame.f_code.co_name == "_pynative_forward_run"
        frame = frame.f_back  # type: ignore[assignment]
    return levels < 2


def _hook(tensors: Sequence[Any], on_gradients: OnGradients) -> Sequence[Any]:
    # A primitive that is the identity forward, and backward hands over one gradient a tensor (zeros if unused).
    def report(gradients: Sequence[Any]) -> None:
        on_gradients(gradients)

    hooked = ops.HookBackward(report)(*tensors)
    return hooked if isinstance(hooked, tuple) else (hooked,)


def _version(tensor: Any) -> int:
    """How often the tensor was written in place."""
    return getattr(tensor, "_version", 0)


def _is_hooked(tensor: Any) -> bool:
    """Whether the tensor stands where a hook put it; before 2.8 nothing tells, and nothing is taken for changed."""
    return str(getattr(tensor, "_grad_node", "<HookBackward")).startswith("<HookBackward")


#: Through it ``value_and_grad``, ``grad`` and ``GradOperation``, which ``TrainOneStepCell`` uses, run forward, or learn
#: what a forward that has run gave; then they compute gradients.
_FORWARD = "_pynative_forward_run"


def gradient_calls(on_roots: OnRoots) -> Sequence[tuple[Any, str, Callable[[Any], Any]]]:
    """Return ``(holder, attribute, wrap)`` of what runs forward for gradients; none where a release has no such."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def told(*args: Any, **kwargs: Any) -> Any:
            given = original(*args, **kwargs)
            try:
                result = given[1] if isinstance(given, tuple) and len(given) == 2 else None
                on_roots(result[:1] if isinstance(result, (list, tuple)) else [result])
            except Exception as error:
                on_roots(error)
            return given

        return told

    return [(base, _FORWARD, wrap)] if hasattr(base, _FORWARD) else []
