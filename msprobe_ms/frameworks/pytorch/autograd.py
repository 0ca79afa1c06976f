"""PyTorch's gradient graph, as the watches see it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch.utils.hooks import unserializable_hook

from msprobe_ms.frameworks.gradient_graph import BeforeHook, Edge, Graph, NodeHook, Part
from msprobe_ms.frameworks.pytorch.modes import Quiet, unseen
from msprobe_ms.support.patching import Hooks

# Taken before anything is wrapped.
_view_as, _as_strided = torch.Tensor.view_as, torch.Tensor.as_strided
_add = torch.Tensor.add
_subtract = torch.Tensor.sub
_abs, _max, _item = torch.Tensor.abs, torch.Tensor.max, torch.Tensor.item
_equal, _is_nan, _or, _and = torch.eq, torch.isnan, torch.logical_or, torch.logical_and
_fill, _finite = torch.masked_fill, torch.nan_to_num
_queue_callback = torch.autograd.Variable._execution_engine.queue_callback


class TensorHook:
    """A hook on a tensor, from whose own table it is taken though registering it was interrupted."""

    def __init__(self, tensor: Any, hook: Callable[[Any], None]) -> None:
        self._tensor = weakref.ref(tensor)
        self._hook = unserializable_hook(hook)

    def install(self) -> None:
        if (tensor := self._tensor()) is not None:
            with unseen():
                tensor.register_hook(self._hook)

    def remove(self) -> None:
        if (tensor := self._tensor()) is not None:
            with unseen():
                hooks = tensor._backward_hooks or {}
            for key in [key for key, hook in list(hooks.items()) if hook is self._hook]:
                hooks.pop(key, None)


def _used(tensor: Any) -> Any:
    """What some node makes of a tensor."""
    return torch.ops.aten.alias.default(tensor) if _has_no_shape(tensor) else _view_as(tensor, tensor)


def _has_no_shape(tensor: Any) -> bool:
    """Whether it is nested and of the older kind, which nothing may be asked that is told of one shape."""
    return tensor.is_nested and tensor.layout is torch.strided


class TorchGraph(Graph):
    """Nodes are ``grad_fn`` objects, which compare equal when they are the same."""

    parameter = torch.nn.Parameter

    def edge(self, tensor: Any) -> Edge | None:
        return None if tensor.grad_fn is None else (tensor.grad_fn, tensor.output_nr)

    def edges(self, tensors: Sequence[Any], *, bounded: bool) -> tuple[list[Edge], int]:
        # A leaf's end of its edges can only be had from a node that uses it.
        views = [_used(tensor) if tensor.grad_fn is None else None for tensor in tensors]
        edges = [
            (tensor.grad_fn, tensor.output_nr) if view is None else view.grad_fn.next_functions[0]
            for tensor, view in zip(tensors, views, strict=True)
        ]
        if not bounded:
            return edges, -1
        newest = next((view for view in reversed(views) if view is not None), None)
        probe = _used(tensors[0]) if newest is None else newest
        return edges, self.number(probe.grad_fn, -1)

    def key(self, node: Any) -> Hashable:
        return node

    def name(self, node: Any) -> str:
        return str(node.name())

    def is_leaf(self, node: Any) -> bool:
        return not node.next_functions

    def number(self, node: Any, unknown: int) -> int:
        # Older releases do not tell it of every node.
        number = getattr(node, "_sequence_nr", None)
        return unknown if number is None else number()

    def hook_node(self, node: Any, hook: NodeHook) -> None:
        node.register_hook(hook)

    def hook_before(self, node: Any, hook: BeforeHook) -> None:
        node.register_prehook(hook)

    def hook_leaf(self, tensor: Any, hook: Callable[[Any], None]) -> Hooks:
        return TensorHook(tensor, hook)

    def hook_result(self, tensor: Any, hook: Callable[[Any], None]) -> None:
        tensor.register_hook(unserializable_hook(hook))

    def viewed(self, tensor: Any) -> tuple[Edge, Part] | None:
        base = tensor._base
        if base is None or base.grad_fn is None or base.layout != torch.strided or base.is_nested:
            return None
        # Nothing of the graph may be held by what hooks of its nodes hold.
        size, strides, offset = tensor.size(), tensor.stride(), tensor.storage_offset() - base.storage_offset()
        whole = base.stride()

        def part(gradient: Any) -> Any:
            return _as_strided(gradient, size, strides, offset) if gradient.stride() == whole else None

        return (base.grad_fn, base.output_nr), part

    def add(self, total: Any, gradient: Any) -> Any:
        with unseen(), Quiet():
            if total.is_sparse and not gradient.is_sparse:
                total, gradient = gradient, total  # the order PyTorch can add
            return _add(total, gradient)

    def without(self, total: Any, part: Any) -> Any:
        with unseen(), Quiet():
            rest = _subtract(total, part)
            if rest.layout != torch.strided:
                return rest
            # What overflowed in the part and so in the sum is the part's; inf - inf would be a NaN of our own.
            rest = _fill(rest, _or(_equal(total, part), _and(_is_nan(total), _is_nan(part))), 0)
            rounding = 4 * torch.finfo(total.dtype).eps * _largest(_finite(total, 0.0, 0.0, 0.0))
            return None if not rest.numel() or _largest(rest) <= rounding else rest

    def when_backward_ends(self, report: Callable[[], None]) -> None:
        _queue_callback(report)


def _largest(tensor: Any) -> float:
    """The largest magnitude in a tensor that is not empty."""
    return float(_item(_max(_abs(tensor)))) if tensor.numel() else 0.0
