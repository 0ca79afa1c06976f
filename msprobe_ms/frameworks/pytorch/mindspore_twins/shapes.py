"""Twins of functions that arrange elements anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from msprobe_ms.frameworks.pytorch.mindspore_twins.common import dims, sizes, tensors
from msprobe_ms.frameworks.pytorch.mindspore_twins.registry import twin


@twin("Functional.expand")
def expand(input_x: Any, size: Any) -> Any:
    return input_x.expand(sizes([size]))


@twin("Functional.expand_dims", "Tensor.expand_dims")
def expand_dims(input_x: Any, axis: int) -> Any:
    return input_x.unsqueeze(axis)


@twin("Functional.expand_as", "Tensor.expand_as")
def expand_as(input: Any, other: Any) -> Any:
    return input.expand(other.shape)


@twin("Functional.view_as")
def view_as(input: Any, other: Any) -> Any:
    return input.reshape(other.shape)


@twin("Tensor.expand", "Tensor.broadcast_to")
def tensor_expand(self: Any, *size: Any, shape: Any = None) -> Any:
    return self.expand(sizes([shape] if shape is not None else size))


@twin("Functional.flatten")
def flatten(input: Any, order: str = "C", *, start_dim: int = 1, end_dim: int = -1) -> Any:
    if order == "F":
        input = input.permute(*range(input.dim() - 1, -1, -1))
    return input.reshape(1) if input.dim() == 0 else torch.flatten(input, min(start_dim, input.dim() - 1), end_dim)


@twin("Tensor.flatten")
def tensor_flatten(self: Any, *positional: Any, order: str = "C", start_dim: int = 0, end_dim: int = -1) -> Any:
    """``flatten(start_dim=0, end_dim=-1)`` or ``flatten(order="C", *, start_dim=0, end_dim=-1)``."""
    if positional and isinstance(positional[0], str):
        order, positional = positional[0], positional[1:]
    start, end = (*positional, *(start_dim, end_dim)[len(positional) :])
    if order == "F":
        self = self.permute(*range(self.dim() - 1, -1, -1))
    return torch.flatten(self, start, end)


@twin("Functional.transpose")
def transpose(input: Any, dims: Sequence[int]) -> Any:
    return input.permute(sizes([dims]))


@twin("Tensor.transpose")
def tensor_transpose(self: Any, *axes: Any, dim0: int | None = None, dim1: int | None = None) -> Any:
    """``transpose(dim0, dim1)`` exchanges two axes; ``transpose(*axes)`` orders all of them."""
    if dim0 is not None:
        axes = (dim0, dim1)
    order = sizes(axes) if axes else tuple(range(self.dim() - 1, -1, -1))
    if len(order) == 2 and len(axes) == 2:
        return self.transpose(*order)
    return self.permute(order)


@twin("Tensor.permute")
def tensor_permute(self: Any, *dims: Any, axis: Any = None) -> Any:
    return self.permute(sizes([axis] if axis is not None else dims))


@twin("Tensor.reshape", "Tensor.view")
def tensor_reshape(self: Any, *shape: Any, dtype: torch.dtype | None = None) -> Any:
    if dtype is not None or (shape and isinstance(shape[0], torch.dtype)):
        return self.view(dtype or shape[0])
    return self.reshape(sizes(shape))


@twin("Functional.tile", "Tensor.tile", "Tensor.repeat", "Mint.tile")
def tile(input: Any, dims: Any, *more: int) -> Any:
    return torch.tile(input, sizes([dims, *more]))


@twin("Functional.repeat_elements")
def repeat_elements(x: Any, rep: int, axis: int = 0) -> Any:
    return torch.repeat_interleave(x, rep, axis)


@twin("Functional.repeat_interleave")
def repeat_interleave(input: Any, repeats: Any, axis: int | None = None) -> Any:
    return _repeated(input, repeats, axis)


@twin("Tensor.repeat_interleave", "Mint.repeat_interleave")
def tensor_repeat_interleave(
    input: Any, repeats: Any, dim: int | None = None, *, output_size: int | None = None
) -> Any:
    return _repeated(input, repeats, dim)


def _repeated(tensor: Any, repeats: Any, axis: int | None) -> Any:
    if isinstance(repeats, (tuple, list)):
        repeats = torch.tensor(repeats)
    return torch.repeat_interleave(tensor, repeats, dim=axis)


@twin("Functional.reverse", "Tensor.reverse")
def reverse(x: Any, axis: Any) -> Any:
    return torch.flip(x, dims(x, axis))


@twin("Functional.reverse_sequence")
def reverse_sequence(x: Any, seq_lengths: Any, seq_dim: int, batch_dim: int = 0) -> Any:
    moved = torch.movedim(x, (batch_dim, seq_dim), (0, 1))
    rows = [
        torch.cat([row[: int(n)].flip(0), row[int(n) :]]) for row, n in zip(moved, seq_lengths.tolist(), strict=True)
    ]
    return torch.movedim(torch.stack(rows), (0, 1), (batch_dim, seq_dim))


@twin("Tensor.reverse_sequence")
def tensor_reverse_sequence(self: Any, seq_lengths: Any, seq_dim: int = 0, batch_dim: int = 0) -> Any:
    return reverse_sequence(self, seq_lengths, seq_dim, batch_dim)


@twin("Functional.unstack")
def unstack(input_x: Any, axis: int = 0) -> Any:
    return torch.unbind(input_x, axis)


@twin("Functional.squeeze", "Tensor.squeeze", "Mint.squeeze")
def squeeze(input: Any, *axis: Any, dim: Any = None) -> Any:
    chosen = axis if dim is None else (dim,)
    if not chosen or chosen == (None,):
        return torch.squeeze(input)
    return torch.squeeze(input, dims(input, sizes(chosen)))


@twin("Functional.atleast_1d")
def atleast_1d(inputs: Any) -> Any:
    return torch.atleast_1d(inputs)


@twin("Functional.atleast_2d")
def atleast_2d(inputs: Any) -> Any:
    return torch.atleast_2d(inputs)


@twin("Functional.atleast_3d")
def atleast_3d(inputs: Any) -> Any:
    return torch.atleast_3d(inputs)


@twin("Functional.hsplit", "Tensor.hsplit")
def hsplit(input: Any, indices_or_sections: Any) -> Any:
    return torch.hsplit(input, indices_or_sections)


@twin("Functional.vsplit", "Tensor.vsplit")
def vsplit(input: Any, indices_or_sections: Any) -> Any:
    return torch.vsplit(input, indices_or_sections)


@twin("Functional.dsplit", "Tensor.dsplit")
def dsplit(input: Any, indices_or_sections: Any) -> Any:
    return torch.dsplit(input, indices_or_sections)


@twin("Functional.tensor_split", "Tensor.tensor_split")
def split_in_parts(input: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    return torch.tensor_split(input, indices_or_sections, axis)


@twin("Functional.meshgrid")
def meshgrid(*inputs: Any, indexing: str = "xy") -> Any:
    return torch.meshgrid(*tensors(inputs), indexing=indexing)


@twin("Functional.diag_embed")
def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    return torch.diag_embed(input, offset, dim1, dim2)


@twin("Tensor.diag")
def tensor_diag(self: Any, diagonal: int = 0) -> Any:
    return torch.diag(self, diagonal)


@twin("Functional.rot90", "Tensor.rot90")
def rot90(input: Any, k: int, dims: Sequence[int]) -> Any:
    return torch.rot90(input, k, dims)


@twin("Tensor.roll")
def tensor_roll(self: Any, shifts: Any, dims: Any = None) -> Any:
    return torch.roll(self, shifts, dims)


@twin("Tensor.chunk")
def tensor_chunk(self: Any, chunks: int, axis: int = 0, *, dim: int | None = None) -> Any:
    return torch.chunk(self, chunks, axis if dim is None else dim)


@twin("Tensor.split")
def tensor_split(self: Any, split_size_or_sections: Any, axis: int = 0, *, dim: int | None = None) -> Any:
    return torch.split(self, split_size_or_sections, axis if dim is None else dim)


@twin("Tensor.sum_to_size")
def sum_to_size(self: Any, *size: Any) -> Any:
    return self.sum_to_size(sizes(size))


@twin("Tensor.resize")
def resize(self: Any, *new_shape: Any) -> Any:
    wanted = sizes(new_shape)
    count = 1
    for each in wanted:
        count *= each
    flat = self.flatten()
    padded = torch.cat([flat, flat.new_zeros(max(0, count - flat.numel()))])
    return padded[:count].reshape(wanted)


@twin("Functional.mirror_pad")
def mirror_pad(input_x: Any, paddings: Any, mode: str) -> Any:
    symmetric = mode.upper() == "SYMMETRIC"
    for axis, (before, after) in enumerate(torch.as_tensor(paddings).tolist()):
        size = input_x.shape[axis]
        skip = 0 if symmetric else 1
        index = [
            *range(before - 1 + skip, skip - 1, -1),
            *range(size),
            *range(size - 1 - skip, size - 1 - skip - after, -1),
        ]
        input_x = torch.index_select(input_x, axis, torch.tensor(index))
    return input_x


@twin("Functional.pad")
def pad(input_x: Any, padding: Any, mode: str = "constant", value: Any = None) -> Any:
    return torch.nn.functional.pad(input_x, sizes([padding]), mode, value)


@twin("Functional.space_to_batch_nd")
def space_to_batch_nd(input_x: Any, block_size: Any, paddings: Sequence[Sequence[int]]) -> Any:
    blocks = [block_size] * len(paddings) if isinstance(block_size, int) else list(block_size)
    spatial = len(blocks)
    first = input_x.dim() - spatial
    padding = [each for pair in reversed(list(paddings)) for each in pair]
    padded = torch.nn.functional.pad(input_x, padding)
    shape = list(padded.shape[:first])
    for size, block in zip(padded.shape[first:], blocks, strict=True):
        shape += [size // block, block]
    inner = [first + 2 * each + 1 for each in range(spatial)]
    outer = [first + 2 * each for each in range(spatial)]
    moved = padded.reshape(shape).permute(*inner, *range(first), *outer)
    return moved.reshape(-1, *padded.shape[1:first], *(shape[axis] for axis in outer))


@twin("Functional.batch_to_space_nd")
def batch_to_space_nd(input_x: Any, block_shape: Any, crops: Sequence[Sequence[int]]) -> Any:
    blocks = [block_shape] * len(crops) if isinstance(block_shape, int) else list(block_shape)
    spatial = len(blocks)
    first = input_x.dim() - spatial
    split = input_x.reshape(*blocks, -1, *input_x.shape[1:])
    order = list(range(spatial, spatial + first))
    for each in range(spatial):
        order += [spatial + first + each, each]
    merged = [size * block for size, block in zip(input_x.shape[first:], blocks, strict=True)]
    result = split.permute(*order).reshape(-1, *input_x.shape[1:first], *merged)
    for axis, (before, after) in enumerate(crops):
        result = result.narrow(first + axis, before, merged[axis] - before - after)
    return result
