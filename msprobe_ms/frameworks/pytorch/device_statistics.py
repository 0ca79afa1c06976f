"""A tensor's statistics computed on its device and left there; those of many are read back at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch

from msprobe_ms.arrays import sketch as sketches
from msprobe_ms.arrays.sketch_map import LENGTH
from msprobe_ms.arrays.statistics import is_large, parts

#: Elements that are made wider at once: a reduction in double copies what it reduces.
_WIDENED = 1 << 22


class PendingStatistics(NamedTuple):
    """Of one tensor, on its device.

    ``values`` are 0-d tensors: Max, Min, Mean and Norm; of booleans the first two; of a scalar its value; of an empty
    tensor none. ``stream`` is what computes them, on CUDA. ``sketch`` is what `sketches.finished_text` takes, of a
    tensor of ``size`` elements.
    """

    values: tuple[torch.Tensor, ...]
    stream: Any = None
    sketch: torch.Tensor | None = None
    size: int = 0
    #: That of a sketch of the tensor.
    dtype: np.dtype = np.dtype(np.float32)


def is_on_device(tensor: torch.Tensor) -> bool:
    """Whether a tensor is on a device of its own."""
    return tensor.is_cuda


def start(tensor: torch.Tensor, wider: torch.dtype | None, *, sketch: bool = False) -> PendingStatistics:
    """Start the statistics of a dense tensor of any shape, by reductions that nobody waits for.

    They are those of ``arrays.statistics``, sums in double: of magnitudes of complex numbers, of booleans Max and Min.
    ``wider`` is a dtype that holds the values of one that has no arithmetic.
    """
    stream = torch.cuda.current_stream(tensor.device) if tensor.is_cuda else None
    numbers = _sketch(tensor, wider) if sketch else None
    dtype = np.dtype(np.float64 if _is_exact(tensor.dtype) else np.float32)
    size = tensor.numel() * (2 if tensor.is_complex() else 1)
    return PendingStatistics(_values(tensor, wider), stream, numbers, size, dtype)


def _is_exact(dtype: torch.dtype) -> bool:
    """Whether a sketch is one in float64, as of doubles and integers."""
    narrow = dtype.is_floating_point or dtype.is_complex or dtype == torch.bool
    return not narrow or dtype in (torch.float64, torch.complex128)


@lru_cache(maxsize=64)
def _steps(device: torch.device, dtype: torch.dtype, stream: int) -> tuple[torch.Tensor, ...]:
    """Vectors of rows and of the rest, and in float64 what folds the products.

    Each stream has its own, as one need not wait for what another copies.
    """
    vectors, folding, rest = (torch.from_numpy(table).to(device) for table in sketches.steps())
    return vectors.to(dtype), rest.to(dtype), folding


def _sketch(tensor: torch.Tensor, wider: torch.dtype | None) -> torch.Tensor | None:
    """What `sketches.finished_text` takes; None where elements in their order would take a copy of a large tensor.

    Products and sums one by one: a product of matrices may run in TF32.
    """
    if tensor.numel() == 0 or (is_large(tuple(tensor.shape)) and not tensor.is_contiguous()):
        return None
    flat = tensor.reshape(-1)
    if flat.is_complex():
        flat = torch.view_as_real(flat.to(wider or flat.dtype)).reshape(-1)
    if flat.numel() <= LENGTH:
        return flat.to(torch.float64, copy=True)  # what is written into it later is not what it holds now
    stream = torch.cuda.current_stream(flat.device).cuda_stream if flat.is_cuda else 0
    numbers, whole = [], sketches.groups(flat.numel())
    for start in range(0, whole, _WIDENED):
        piece = _numbers(flat[start : min(start + _WIDENED, whole)])
        vectors, _, folding = _steps(piece.device, piece.dtype, stream)
        rows = piece.reshape(-1, *vectors.shape[1:])
        products = torch.stack([(rows * vector).sum(-1, dtype=torch.float64) for vector in vectors], -1).reshape(-1)
        blocks = products.numel() - products.numel() % folding.shape[1]
        numbers += [
            (of_block.unsqueeze(-2) * folding[:, : of_block.shape[-1]]).sum(-1).reshape(-1)
            for of_block in (products[:blocks].reshape(-1, folding.shape[1]), products[blocks:])
            if of_block.numel()
        ]
    if whole < flat.numel():
        piece = _numbers(flat[whole:])
        _, rest, _ = _steps(piece.device, piece.dtype, stream)
        rows = piece.numel() - piece.numel() % rest.shape[1]
        numbers += [
            (row.unsqueeze(-2) * rest[:, : row.shape[-1]]).sum(-1, dtype=torch.float64).reshape(-1)
            for row in (piece[:rows].reshape(-1, rest.shape[1]), piece[rows:])
            if row.numel()
        ]
    return torch.cat(numbers)


def _numbers(piece: torch.Tensor) -> torch.Tensor:
    return piece.double() if _is_exact(piece.dtype) else piece.float()


def _values(tensor: torch.Tensor, wider: torch.dtype | None) -> tuple[torch.Tensor, ...]:
    if tensor.numel() == 0:
        return ()
    if tensor.dtype == torch.bool:
        return tensor.any(), tensor.all()
    if tensor.dim() == 0:
        return (_widened(tensor, wider).clone(),)  # what is written into it later is not what it holds now
    large = tensor.numel() > _WIDENED
    pieces = [tensor[index] for index in parts(tuple(tensor.shape), _WIDENED)] if large else [tensor]
    found = list(zip(*(_reduced(_widened(piece, wider)) for piece in pieces), strict=True))
    if large:
        maxima, minima, totals, norms = map(torch.stack, found)
        return maxima.max(), minima.min(), totals.sum() / tensor.numel(), torch.linalg.vector_norm(norms)
    (maximum,), (minimum,), (total,), (norm,) = found
    return maximum, minimum, total / tensor.numel(), norm


def _widened(piece: torch.Tensor, wider: torch.dtype | None) -> torch.Tensor:
    if piece.is_complex():
        return piece.to(wider or piece.dtype).abs()
    if not piece.is_floating_point():
        return piece.double()
    return piece.float() if piece.element_size() == 1 else piece


def _reduced(piece: torch.Tensor) -> tuple[torch.Tensor, ...]:
    minimum, maximum = torch.aminmax(piece)
    return maximum, minimum, piece.sum(dtype=torch.float64), torch.linalg.vector_norm(piece, dtype=torch.float64)


def read(found: Sequence[PendingStatistics]) -> list[tuple[Any, Any, Any, Any, str | None]]:
    """Read Max, Min, Mean, Norm and the text of the sketch of each, by one read-back a device."""
    values: dict[int, float] = {}
    alike: dict[torch.device, dict[torch.dtype, list[torch.Tensor]]] = {}
    for value in (value for one in found for value in one.values):
        alike.setdefault(value.device, {}).setdefault(value.dtype, []).append(value)
    for stream in {one.stream for one in found if one.stream is not None}:
        # Not for the whole device: what others send may depend on what this process does next.
        torch.cuda.current_stream(stream.device).wait_stream(stream)
    sketched: dict[torch.device, list[PendingStatistics]] = {}
    for one in found:
        if one.sketch is not None:
            sketched.setdefault(one.sketch.device, []).append(one)
    texts: dict[int, str | None] = {}
    for device in {**alike, **sketched}:
        groups, ones = alike.get(device, {}), sketched.get(device, [])
        stacked = [torch.stack(group).double() for group in groups.values()]
        numbers = torch.cat([*stacked, *(one.sketch for one in ones if one.sketch is not None)]).cpu().numpy()
        order = [value for group in groups.values() for value in group]
        values.update(zip(map(id, order), numbers[: len(order)].tolist(), strict=True))
        begin = len(order)
        for one in ones:
            end = begin + (0 if one.sketch is None else one.sketch.numel())
            texts[id(one)] = sketches.finished_text(numbers[begin:end], one.size, one.dtype)
            begin = end
    return [(*_told([values[id(value)] for value in one.values]), texts.get(id(one))) for one in found]


def _told(values: list[float]) -> tuple[Any, Any, Any, Any]:
    if len(values) == 2:
        return bool(values[0]), bool(values[1]), None, None
    if len(values) == 1:
        return values[0], values[0], values[0], values[0]
    maximum, minimum, mean, norm = values or (None,) * 4
    return maximum, minimum, mean, norm
