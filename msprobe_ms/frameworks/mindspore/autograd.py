"""MindSpore's gradient graph (2.8 and later), as the watches see it."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any

from mindspore import Tensor, _c_expression

from msprobe_ms.frameworks.gradient_graph import BeforeHook, Edge, Graph, NodeHook
from msprobe_ms.frameworks.mindspore.arrays import difference

# Taken before anything is wrapped; beneath it is no primitive that could be.
_add = Tensor.__add__


def has_graph() -> bool:
    """Whether this MindSpore shows its gradient graph; 2.7 shows nodes, but not which of them are the same."""
    nodes = getattr(_c_expression, "BackwardNodePy", None)
    return hasattr(Tensor, "_grad_node") and hasattr(Tensor, "_output_index") and hasattr(nodes, "_unique_id")


class MindSporeGraph(Graph):
    """Nodes are made anew each time they are asked for; their number in memory tells which is which."""

    def __init__(self) -> None:
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

    def hook_tensor(self, tensor: Any, hook: Callable[[Any], None]) -> None:
        # A hook on the tensor itself would stay with it beyond this graph.
        number = tensor._output_index
        tensor._grad_node.register_prehook(lambda gradients: hook(gradients[number]))

    def add(self, total: Any, gradient: Any) -> Any:
        return _add(total, gradient)

    def without(self, total: Any, part: Any) -> Any:
        return difference(total, part)

    def when_backward_ends(self, report: Callable[[], None]) -> None:
        # The engine tells nobody; `backward_ended` is called when the next call begins, and when recording stops.
        self._waiting[threading.get_ident()].append(report)

    def backward_ended(self, *, everywhere: bool) -> None:
        """Report what came of gradients that will not be complete any more, of this thread's backward or of any."""
        for thread in list(self._waiting) if everywhere else [threading.get_ident()]:
            for report in self._waiting.pop(thread, ()):
                report()
