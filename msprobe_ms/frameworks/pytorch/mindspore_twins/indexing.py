"""Twins of functions that read and write elements by index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from msprobe_ms.frameworks.pytorch.mindspore_twins.common import like, sizes
from msprobe_ms.frameworks.pytorch.mindspore_twins.registry import twin


@twin("Functional.gather_elements")
def gather_elements(input: Any, dim: int, index: Any) -> Any:
    return torch.gather(input, dim, index.long())


@twin("Functional.gather_d")
def gather_d(x: Any, dim: int, index: Any) -> Any:
    return torch.gather(x, dim, index.long())


@twin("Functional.gather")
def gather(input_params: Any, input_indices: Any, axis: Any, batch_dims: int = 0) -> Any:
    axis, indices = int(axis) % input_params.dim(), input_indices.long()
    if batch_dims:
        pairs = zip(input_params, indices, strict=True)
        return torch.stack([gather(each, index, axis - 1, batch_dims - 1) for each, index in pairs])
    taken = torch.index_select(input_params, axis, indices.flatten())
    return taken.reshape(*input_params.shape[:axis], *indices.shape, *input_params.shape[axis + 1 :])


@twin("Tensor.gather")
def tensor_gather(self: Any, *positional: Any, **options: Any) -> Any:
    """``gather(dim, index)`` or ``gather(input_indices, axis, batch_dims=0)``."""
    if "dim" in options or (positional and isinstance(positional[0], int)):
        names = ("dim", "index")
        return gather_elements(self, **(dict(zip(names, positional, strict=False)) | options))
    return gather(self, *positional, **options)


@twin("Functional.gather_nd", "Tensor.gather_nd")
def gather_nd(input_x: Any, indices: Any) -> Any:
    return input_x[tuple(indices.long().movedim(-1, 0))]


@twin("Functional.index_select", "Tensor.index_select")
def index_select(input: Any, axis: int | None = None, index: Any = None, *, dim: int | None = None) -> Any:
    chosen = axis if dim is None else dim
    assert chosen is not None
    return torch.index_select(input, chosen, index.flatten().long())


@twin("Functional.index_add")
def index_add(x: Any, indices: Any, y: Any, axis: int, use_lock: bool = True, check_index_bound: bool = True) -> Any:
    return torch.index_add(x, axis, indices, y)


@twin("Tensor.index_add")
def tensor_index_add(self: Any, *positional: Any, **options: Any) -> Any:
    """``index_add(indices, y, axis)`` or ``index_add(dim, index, source, *, alpha=1)``."""
    of_torch = "dim" in options or (positional and isinstance(positional[0], int))
    if of_torch:
        return torch.index_add(self, *positional, **options)
    return index_add(self, *positional, **options)


@twin("Functional.inplace_index_add")
def inplace_index_add(var: Any, indices: Any, updates: Any, axis: int) -> Any:
    return torch.index_add(var, axis, indices, updates)


def _rows(indices: Any) -> Any:
    return torch.as_tensor([indices] if isinstance(indices, int) else indices)


@twin("Functional.inplace_add")
def inplace_add(x: Any, v: Any, indices: Any) -> Any:
    return torch.index_add(x, 0, _rows(indices), v)


@twin("Functional.inplace_sub")
def inplace_sub(x: Any, v: Any, indices: Any) -> Any:
    return torch.index_add(x, 0, _rows(indices), -v)


@twin("Functional.inplace_update")
def inplace_update(x: Any, v: Any, indices: Any) -> Any:
    return torch.index_copy(x, 0, _rows(indices), v)


@twin("Functional.index_fill", "Tensor.index_fill")
def index_fill(x: Any, axis: int, index: Any, value: Any) -> Any:
    return torch.index_fill(x, int(axis), _rows(index).long(), like(value, x).to(x.dtype))


@twin("Functional.select")
def select(condition: Any, input: Any, other: Any) -> Any:
    tensor = input if isinstance(input, torch.Tensor) else other
    return torch.where(condition, like(input, tensor), like(other, tensor))


@twin("Tensor.select")
def tensor_select(self: Any, *positional: Any, **options: Any) -> Any:
    """``select(dim, index)``, or ``select(condition, y)``: self where the condition is true."""
    if "condition" in options or (positional and isinstance(positional[0], torch.Tensor)):
        names = ("condition", "y")
        given = dict(zip(names, positional, strict=False)) | options
        return torch.where(given["condition"], self, like(given["y"], self))
    return torch.select(self, *positional, **options)


@twin("Tensor.where")
def tensor_where(self: Any, condition: Any, y: Any = None, *, other: Any = None) -> Any:
    return torch.where(condition, self, like(y if other is None else other, self))


@twin("Functional.where", "Mint.where")
def where(condition: Any, *choices: Any, **named: Any) -> Any:
    if not choices and not named:
        return torch.where(condition)
    given = dict(zip(("input", "other"), choices, strict=False)) | named
    return torch.where(condition, given["input"], given["other"])


@twin("Functional.masked_fill", "Tensor.masked_fill")
def masked_fill(input_x: Any, mask: Any, value: Any) -> Any:
    shape = torch.broadcast_shapes(input_x.shape, mask.shape)
    return torch.masked_fill(input_x.expand(shape), mask, value)


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


@twin("Functional.slice")
def slice_of(input_x: Any, begin: Any, size: Any) -> Any:
    for axis, (first, count) in enumerate(zip(sizes([begin]), sizes([size]), strict=True)):
        input_x = input_x.narrow(axis, first, input_x.shape[axis] - first if count == -1 else count)
    return input_x


@twin("Functional.strided_slice")
def strided_slice(
    input_x: Any,
    begin: Any,
    end: Any,
    strides: Any,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Any:
    index: list[Any] = []
    for place, (first, last, step) in enumerate(zip(sizes([begin]), sizes([end]), sizes([strides]), strict=True)):
        bit = 1 << place
        if ellipsis_mask & bit:
            index.append(Ellipsis)
        elif new_axis_mask & bit:
            index.append(None)
        elif shrink_axis_mask & bit:
            index.append(first)
        else:
            index.append(slice(None if begin_mask & bit else first, None if end_mask & bit else last, step))
    return _sliced(input_x, index)


def _sliced(tensor: Any, index: list[Any]) -> Any:
    """As ``tensor[index]``; torch has no negative steps."""
    axis, result = 0, tensor
    taken = sum(each is not None and each is not Ellipsis for each in index)
    final: list[Any] = []
    for each in index:
        if each is Ellipsis:
            axis += tensor.dim() - taken
        elif isinstance(each, slice) and (each.step or 1) < 0:
            places = list(range(tensor.shape[axis]))[each]
            result = torch.index_select(result, axis, torch.tensor(places, dtype=torch.int64))
            each, axis = slice(None), axis + 1
        elif each is not None:
            axis += 1
        final.append(each)
    return result[tuple(final)]


@twin("Functional.take")
def take(input: Any, index: Any) -> Any:
    return torch.take(input, index)


@twin("Tensor.take")
def tensor_take(
    self: Any, indices: Any = None, axis: int | None = None, mode: str = "clip", *, index: Any = None
) -> Any:
    indices = indices if index is None else index
    source = self.flatten() if axis is None else self
    size = source.shape[0 if axis is None else axis]
    places = indices % size if mode == "wrap" else torch.where(indices < 0, indices + size, indices)
    return gather(source, places.clamp(0, size - 1), axis or 0)


def _segments(reduce: str, empty: float, x: Any, segment_ids: Any, num_segments: Any) -> Any:
    rows = segment_ids.dim()
    flat = x.reshape(-1, *x.shape[rows:])
    index = segment_ids.flatten().long().reshape(-1, *[1] * (flat.dim() - 1)).expand(flat.shape)
    if flat.is_floating_point():
        start = torch.full((int(num_segments), *flat.shape[1:]), empty, dtype=flat.dtype)
    else:
        limits = torch.iinfo(flat.dtype)
        clipped = max(min(empty, limits.max), limits.min)
        start = torch.full((int(num_segments), *flat.shape[1:]), int(clipped), dtype=flat.dtype)
    return start.scatter_reduce(0, index, flat, reduce, include_self=True)


@twin("Functional.unsorted_segment_sum")
def unsorted_segment_sum(input_x: Any, segment_ids: Any, num_segments: Any) -> Any:
    return _segments("sum", 0, input_x, segment_ids, num_segments)


@twin("Functional.unsorted_segment_prod", "Tensor.unsorted_segment_prod")
def unsorted_segment_prod(x: Any, segment_ids: Any, num_segments: Any) -> Any:
    return _segments("prod", 1, x, segment_ids, num_segments)


@twin("Functional.unsorted_segment_max", "Tensor.unsorted_segment_max")
def unsorted_segment_max(x: Any, segment_ids: Any, num_segments: Any) -> Any:
    return _segments("amax", torch.finfo(torch.float32).min, x, segment_ids, num_segments)


@twin("Functional.unsorted_segment_min", "Tensor.unsorted_segment_min")
def unsorted_segment_min(x: Any, segment_ids: Any, num_segments: Any) -> Any:
    return _segments("amin", torch.finfo(torch.float32).max, x, segment_ids, num_segments)


@twin("Functional.put_")
def put_in_place(input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    return input.put_(index, source, accumulate)


@twin("Functional.fill_diagonal", "Tensor.fill_diagonal")
def fill_diagonal(self: Any, fill_value: Any, wrap: bool = False) -> Any:
    return self.clone().fill_diagonal_(fill_value, wrap)


@twin("Tensor.__getitem__")
def getitem(self: Any, index: Any) -> Any:
    return _sliced(self, list(index) if isinstance(index, tuple) else [index])


@twin("Tensor.index")
def tensor_index(self: Any, indices: Any) -> Any:
    return self[tuple(indices)]
