"""Twins of functions that combine values with the elements at an index, and of those that do so by segments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from msprobe_ms.frameworks.pytorch.mindspore_twins.common import sizes
from msprobe_ms.frameworks.pytorch.mindspore_twins.registry import twin


@twin("Functional.scatter")
def scatter(input: Any, axis: int, index: Any, src: Any) -> Any:
    return torch.scatter(input, axis, index, src)


@twin("Functional.tensor_scatter_elements")
def tensor_scatter_elements(input_x: Any, indices: Any, updates: Any, axis: int = 0, reduction: str = "none") -> Any:
    index = torch.where(indices < 0, indices + input_x.shape[axis], indices).long()
    if reduction == "add":
        return torch.scatter_add(input_x, axis, index, updates)
    return torch.scatter(input_x, axis, index, updates)


def _full_index(input: Any, indices: Any) -> tuple[Any, ...]:
    return tuple(indices.long().movedim(-1, 0))


def _combined(operation: str, input: Any, index: tuple[Any, ...], updates: Any) -> Any:
    """``input`` with ``updates`` applied at an index of leading axes; an index that is named twice counts twice."""
    if operation in ("add", "sub"):
        return input.index_put(index, updates if operation == "add" else -updates, accumulate=True)
    if operation == "update":
        return input.index_put(index, updates)
    # One after the other, as an index may be named twice.
    places = torch.stack(torch.broadcast_tensors(*index), -1).reshape(-1, len(index))
    pieces = updates.reshape(len(places), *input.shape[len(index) :])
    result = input
    for place, piece in zip(places, pieces, strict=True):
        here = tuple(place)
        result = result.index_put(here, _OPERATIONS[operation](result[here], piece))
    return result


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "mul": torch.mul,
    "div": torch.div,
    "max": torch.maximum,
    "min": torch.minimum,
}


def _scatter_twins(operation: str) -> None:
    """The four families of functions that combine slices with what is there."""

    def first_axis(input_x: Any, indices: Any, updates: Any) -> Any:
        return input_x.copy_(_combined(operation, input_x.clone(), (indices.long(),), updates))

    def in_place(input_x: Any, indices: Any, updates: Any, use_locking: bool = False) -> Any:
        return input_x.copy_(_combined(operation, input_x.clone(), _full_index(input_x, indices), updates))

    def beside(input_x: Any, indices: Any, updates: Any) -> Any:
        return _combined(operation, input_x, _full_index(input_x, indices), updates)

    twin(f"Functional.scatter_{operation}")(first_axis)
    twin(f"Functional.scatter_nd_{operation}")(in_place)
    twin(f"Functional.tensor_scatter_{operation}")(beside)
    if operation not in ("add", "update"):
        twin(f"Tensor.scatter_{operation}")(beside)


for _operation in ("add", "sub", "mul", "div", "max", "min", "update"):
    _scatter_twins(_operation)


@twin("Tensor.scatter_add")
def tensor_scatter_add(self: Any, *positional: Any, **options: Any) -> Any:
    """``scatter_add(dim, index, src)`` or ``scatter_add(indices, updates)``."""
    if "dim" in options or (positional and isinstance(positional[0], int)):
        return torch.scatter_add(self, *positional, **options)
    given = dict(zip(("indices", "updates"), positional, strict=False)) | options
    return _combined("add", self, _full_index(self, given["indices"]), given["updates"])


@twin("Tensor.scatter")
def tensor_scatter(
    self: Any, axis: int | None = None, index: Any = None, src: Any = None, *, dim: int | None = None
) -> Any:
    return torch.scatter(self, axis if dim is None else dim, index, src)


@twin("Functional.scatter_nd")
def scatter_nd(indices: Any, updates: Any, shape: Any) -> Any:
    return _combined("add", updates.new_zeros(sizes([shape])), _full_index(updates, indices), updates)


def _segments(reduce: str, empty: float, x: Any, segment_ids: Any, num_segments: Any) -> Any:
    rows = segment_ids.dim()
    flat = x.reshape(-1, *x.shape[rows:])
    index = segment_ids.flatten().long().reshape(-1, *[1] * (flat.dim() - 1)).expand(flat.shape)
    start = torch.full((int(num_segments), *flat.shape[1:]), empty, dtype=flat.dtype)
    return start.scatter_reduce(0, index, flat, reduce, include_self=True)


def _limits(x: Any) -> Any:
    """The least and the largest number of a tensor's dtype, which stand for the extremes of nothing."""
    return torch.finfo(x.dtype) if x.is_floating_point() else torch.iinfo(x.dtype)


@twin("Functional.unsorted_segment_sum")
def unsorted_segment_sum(input_x: Any, segment_ids: Any, num_segments: Any) -> Any:
    return _segments("sum", 0, input_x, segment_ids, num_segments)


@twin("Functional.unsorted_segment_prod", "Tensor.unsorted_segment_prod")
def unsorted_segment_prod(x: Any, segment_ids: Any, num_segments: Any) -> Any:
    return _segments("prod", 1, x, segment_ids, num_segments)


@twin("Functional.unsorted_segment_max", "Tensor.unsorted_segment_max")
def unsorted_segment_max(x: Any, segment_ids: Any, num_segments: Any) -> Any:
    return _segments("amax", _limits(x).min, x, segment_ids, num_segments)


@twin("Functional.unsorted_segment_min", "Tensor.unsorted_segment_min")
def unsorted_segment_min(x: Any, segment_ids: Any, num_segments: Any) -> Any:
    return _segments("amin", _limits(x).max, x, segment_ids, num_segments)
