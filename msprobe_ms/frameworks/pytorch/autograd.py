"""PyTorch's gradient graph, as the watches see it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch.utils.hooks import unserializable_hook

from msprobe_ms.frameworks.gradients.graph import BeforeHook, Edge, Graph, NodeHook
from msprobe_ms.frameworks.gradients.hooks import Part
from msprobe_ms.frameworks.pytorch import genuine
from msprobe_ms.frameworks.pytorch.genuine import COMMON, grad_fn, output_number
from msprobe_ms.frameworks.pytorch.modes import Quiet, unseen
from msprobe_ms.support.patching import Hooks

#: Has a node of its own made of it, to learn how far nodes are counted.
_COUNTED = torch.empty(1, device="cpu", requires_grad=True)

# Taken before anything is wrapped.
_alias = torch.ops.aten.alias.default
_view_as, _as_strided = torch.Tensor.view_as, torch.Tensor.as_strided
_add = torch.Tensor.add
_subtract = torch.Tensor.sub
_abs, _max, _item = torch.Tensor.abs, torch.Tensor.max, torch.Tensor.item
_equal, _is_nan, _or, _and = torch.eq, torch.isnan, torch.logical_or, torch.logical_and
_fill, _finite = torch.masked_fill, torch.nan_to_num
_queue_callback = torch.autograd.Variable._execution_engine.queue_callback


class TensorHook:
    """A hook on a tensor, from whose own table it is taken though registering it was interrupted.

    It is the very object in that table: there is one for each parameter, and what is made of fewer objects brings the
    next search for cycles less near.
    Once it is on, only the table is referred to: tensors with weak references cannot be swapped, as ``Module.to`` may.
    """

    __slots__ = ("__weakref__", "_hook", "_table", "_tensor")

    #: As PyTorch's `unserializable_hook` says it of a function.
    __torch_unserializable__ = True

    def __init__(self, tensor: Any, hook: Callable[[Any], None]) -> None:
        """``hook`` is told the gradient, or what telling it raises: that would end the backward."""
        self._tensor: Callable[[], Any] = weakref.ref(tensor)
        self._table: Callable[[], Any] = _no_table
        self._hook = hook

    def __call__(self, gradient: Any) -> None:
        try:
            self._hook(gradient)
        except Exception as error:
            self._hook(error)

    def install(self) -> None:
        if (tensor := self._tensor()) is not None:
            with unseen():
                genuine.register_hook(tensor, self)
                self._table = weakref.ref(genuine.backward_hooks(tensor))
            self._tensor = _no_table

    def remove(self) -> None:
        hooks = self._table()
        if hooks is None and (tensor := self._tensor()) is not None:
            hooks = genuine.backward_hooks(tensor)
        for key in [key for key, hook in list((hooks or {}).items()) if hook is self]:
            hooks.pop(key, None)


def _no_table() -> None:
    """Give what a weak reference gives to what is gone."""


class _Use(torch.autograd.Function):
    """A node that uses a tensor, without an operation on it that its class is told of or its layout lacks."""

    @staticmethod
    def forward(_: Any, tensor: Any) -> Any:
        return torch.empty(0, device="cpu")

    @staticmethod
    def backward(_: Any, gradient: Any) -> None:
        return None


def _used(tensor: Any) -> Any:
    """What some node makes of a tensor."""
    if type(tensor) not in COMMON or genuine.layout(tensor) is not torch.strided:
        return _Use.apply(tensor)
    # A nested one of the older kind may not be asked what is told of one shape.
    return _alias(tensor) if genuine.is_nested(tensor) else _view_as(tensor, tensor)


class TorchGraph(Graph):
    """Nodes are ``grad_fn`` objects, which compare equal when they are the same."""

    parameter = torch.nn.Parameter

    def edge(self, tensor: Any) -> Edge | None:
        node = grad_fn(tensor)
        return None if node is None else (node, output_number(tensor))

    def edges(self, tensors: Sequence[Any], *, bounded: bool) -> tuple[list[Edge], int]:
        # A leaf's end of its edges can only be had from a node that uses it.
        views = [_used(tensor) if grad_fn(tensor) is None else None for tensor in tensors]
        edges = [
            (grad_fn(tensor), output_number(tensor)) if view is None else grad_fn(view).next_functions[0]
            for tensor, view in zip(tensors, views, strict=True)
        ]
        if not bounded:
            return edges, -1
        newest = next((view for view in reversed(views) if view is not None), None)
        return edges, self.number(grad_fn(_used(_COUNTED) if newest is None else newest), -1)

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
        genuine.register_hook(tensor, unserializable_hook(hook))

    def viewed(self, tensor: Any) -> tuple[Edge, Part] | None:
        base = genuine.base(tensor)
        node = None if base is None else grad_fn(base)
        if node is None or genuine.layout(base) != torch.strided or genuine.is_nested(base):
            return None
        # Nothing of the graph may be held by what hooks of its nodes hold.
        size, strides, whole = genuine.size(tensor), genuine.stride(tensor), genuine.stride(base)
        offset = genuine.storage_offset(tensor) - genuine.storage_offset(base)

        def part(gradient: Any) -> Any:
            return _as_strided(gradient, size, strides, offset) if gradient.stride() == whole else None

        return (node, output_number(base)), part

    def add(self, total: Any, gradient: Any) -> Any:
        if not genuine.is_read(total):
            return total  # nothing but its shape and dtype is recorded, and its class would be told of the addition
        with unseen(), Quiet():
            if total.is_sparse and not gradient.is_sparse:
                total, gradient = gradient, total  # the order PyTorch can add
            return _add(total, gradient)

    def without(self, total: Any, part: Any) -> Any:
        if not genuine.is_read(total):
            return total
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
