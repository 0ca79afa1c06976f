"""Twins of functions that order elements, and of those that find the largest, the smallest or the one between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from msprobe_ms.frameworks.pytorch.mindspore_twins.common import Axes, dims, like
from msprobe_ms.frameworks.pytorch.mindspore_twins.registry import twin


def _extreme(
    reduce: Callable[..., Any],
    join: Callable[..., Any],
    input: Any,
    axis: Axes,
    keepdims: bool,
    initial: Any,
    where: Any,
) -> Any:
    """The extreme value along axes, of the elements chosen by ``where`` and ``initial``."""
    if isinstance(where, torch.Tensor):
        input = torch.where(where, input, like(initial, input))
    result = reduce(input, dims(input, axis), keepdims)
    return result if initial is None else join(result, like(initial, input))


@twin("Functional.amax", "Tensor.amax")
def amax(input: Any, axis: Axes = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Any:
    return _extreme(torch.amax, torch.maximum, input, axis, keepdims, initial, where)


@twin("Functional.amin", "Tensor.amin")
def amin(input: Any, axis: Axes = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Any:
    return _extreme(torch.amin, torch.minimum, input, axis, keepdims, initial, where)


@twin("Functional.aminmax", "Tensor.aminmax")
def aminmax(input: Any, *, axis: int | None = 0, keepdims: bool = False) -> Any:
    return torch.aminmax(input, dim=axis, keepdim=keepdims)


def _with_index(reduce: Callable[..., Any], input: Any, axis: int | None, keepdims: bool) -> Any:
    """The extreme value and where it is; its place is 0 where the whole tensor is reduced."""
    if axis is None:
        return reduce(input), torch.tensor(0)
    return tuple(reduce(input, axis, keepdims))


@twin("Functional.max")
def maximum_with_index(
    input: Any, axis: int | None = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> Any:
    if initial is None and where is None:
        return _with_index(torch.max, input, axis, keepdims)
    chosen = input if where is None else torch.where(where, input, like(initial, input))
    return _with_index(torch.max, torch.maximum(chosen, like(initial, input)), axis, keepdims)


@twin("Functional.min")
def minimum_with_index(
    input: Any, axis: int | None = None, keepdims: bool = False, *, initial: Any = None, where: Any = None
) -> Any:
    if initial is None and where is None:
        return _with_index(torch.min, input, axis, keepdims)
    chosen = input if where is None else torch.where(where, input, like(initial, input))
    return _with_index(torch.min, torch.minimum(chosen, like(initial, input)), axis, keepdims)


@twin("Tensor.argmax_with_value")
def argmax_with_value(self: Any, axis: int | None = 0, keep_dims: bool = False) -> Any:
    return _with_index(torch.max, self, axis, keep_dims)


@twin("Tensor.argmin_with_value")
def argmin_with_value(self: Any, axis: int | None = 0, keep_dims: bool = False) -> Any:
    return _with_index(torch.min, self, axis, keep_dims)


def _tensor_extreme(
    reduce: Callable[..., Any],
    plain: Callable[..., Any],
    self: Any,
    axis: Any,
    keepdims: bool,
    options: dict[str, Any],
) -> Any:
    """``Tensor.max`` and ``Tensor.min``: with ``dim`` values and indices, with ``axis=`` by name the values alone."""
    if "dim" in options or "keepdim" in options or (axis is not None and not options.get("by_name")):
        dim = options.get("dim", axis)
        return tuple(reduce(self, dim, options.get("keepdim", keepdims)))
    if options.get("return_indices"):
        return _with_index(reduce, self, axis, keepdims)
    where = options.get("where", True)
    return plain(self, axis, keepdims, initial=options.get("initial"), where=None if where is True else where)


@twin("Tensor.max")
def tensor_max(self: Any, *positional: Any, **options: Any) -> Any:
    """``max()``, ``max(dim, keepdim)`` or ``max(axis=None, keepdims=False, *, initial, where, return_indices)``."""
    return _overloaded_extreme(torch.max, amax, self, positional, options)


@twin("Tensor.min")
def tensor_min(self: Any, *positional: Any, **options: Any) -> Any:
    """As ``tensor_max``."""
    return _overloaded_extreme(torch.min, amin, self, positional, options)


def _overloaded_extreme(
    reduce: Callable[..., Any],
    plain: Callable[..., Any],
    self: Any,
    positional: tuple[Any, ...],
    options: dict[str, Any],
) -> Any:
    by_name = "axis" in options or "keepdims" in options
    axis = positional[0] if positional else options.get("axis")
    keepdims = positional[1] if len(positional) > 1 else options.get("keepdims", False)
    rest = {key: value for key, value in options.items() if key not in ("axis", "keepdims")}
    return _tensor_extreme(reduce, plain, self, axis, keepdims, {**rest, "by_name": by_name})


@twin("Functional.median")
def median(input: Any, axis: int = -1, keepdims: bool = False) -> Any:
    return tuple(torch.median(input, axis, keepdims))


@twin("Tensor.median")
def tensor_median(self: Any, *positional: Any, **options: Any) -> Any:
    """``median()`` is the value; with an axis values and indices."""
    if not positional and not options:
        return torch.median(self)
    axis = positional[0] if positional else options.get("axis", options.get("dim", -1))
    keepdims = positional[1] if len(positional) > 1 else options.get("keepdims", options.get("keepdim", False))
    return tuple(torch.median(self, axis, keepdims))


@twin("Functional.nanmedian", "Tensor.nanmedian")
def nanmedian(input: Any, axis: int = -1, keepdims: bool = False) -> Any:
    return tuple(torch.nanmedian(input, axis, keepdims))


@twin("Functional.argmin")
def argmin(input: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    return torch.argmin(input, axis, keepdims)


@twin("Tensor.argmax")
def tensor_argmax(
    self: Any, axis: int | None = None, keepdims: bool = False, *, dim: int | None = None, keepdim: bool = False
) -> Any:
    return torch.argmax(self, axis if dim is None else dim, keepdims or keepdim)


@twin("Tensor.argmin")
def tensor_argmin(
    self: Any, axis: int | None = None, keepdims: bool = False, *, dim: int | None = None, keepdim: bool = False
) -> Any:
    return torch.argmin(self, axis if dim is None else dim, keepdims or keepdim)


@twin("Functional.unique")
def unique(input: Any) -> Any:
    """Different elements in the order in which they come first, and where each element is among them."""
    flat = input.flatten()
    values, inverse = torch.unique(flat, return_inverse=True)
    places = torch.full(values.shape, flat.numel()).scatter_reduce(0, inverse, torch.arange(flat.numel()), "amin")
    order = torch.argsort(places)
    return values[order], torch.argsort(order)[inverse].reshape(input.shape)


@twin("Functional.bucketize")
def bucketize(input: Any, boundaries: Any, *, right: bool = False) -> Any:
    return torch.bucketize(input, torch.as_tensor(boundaries, dtype=input.dtype), right=right)


@twin("Functional.topk", "Tensor.topk")
def topk(input: Any, k: int, dim: int | None = None, largest: bool = True, sorted: bool = True) -> Any:
    return tuple(torch.topk(input, k, -1 if dim is None else dim, largest, sorted))


@twin("Functional.top_k", "Tensor.top_k")
def top_k(input_x: Any, k: int, sorted: bool = True) -> Any:
    return tuple(torch.topk(input_x, k, -1, True, sorted))


@twin("Tensor.sort")
def tensor_sort(
    self: Any, axis: int = -1, descending: bool = False, stable: bool = False, *, dim: int | None = None
) -> Any:
    return torch.sort(self, dim=axis if dim is None else dim, descending=descending, stable=stable)


@twin("Mint.argsort")
def mint_argsort(input: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    return torch.argsort(input, dim=dim, descending=descending, stable=stable)


@twin("Tensor.argsort")
def tensor_argsort(
    self: Any, axis: int = -1, descending: bool = False, stable: bool = False, *, dim: int | None = None
) -> Any:
    return torch.argsort(self, dim=axis if dim is None else dim, descending=descending, stable=stable)


@twin("Tensor.kthvalue")
def kthvalue(self: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    return tuple(torch.kthvalue(self, k, dim, keepdim))


@twin("Tensor.searchsorted")
def tensor_searchsorted(self: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    return torch.searchsorted(self, v, side=side, sorter=sorter)
