"""A tensor's statistics computed on its device and left there; those of many are read back at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from msprobe_ms.arrays.statistics import parts

#: Elements that are made wider at once: a reduction in double copies what it reduces.
_WIDENED = 1 << 22


class PendingStatistics(NamedTuple):
    """Of one tensor, on its device.

    ``values`` are 0-d tensors: Max, Min, Mean and Norm; of booleans the first two; of a scalar its value; of an empty
    tensor none. ``stream`` is what computes them, on CUDA.
    """

    values: tuple[torch.Tensor, ...]
    stream: Any = None


def is_on_device(tensor: torch.Tensor) -> bool:
    """Whether a tensor is on a device of its own."""
    return tensor.is_cuda


def start(tensor: torch.Tensor, wider: torch.dtype | None) -> PendingStatistics:
    """Start the statistics of a dense tensor of any shape, by reductions that nobody waits for.

    They are those of ``arrays.statistics``, sums in double: of magnitudes of complex numbers, of booleans Max and Min.
    ``wider`` is a dtype that holds the values of one that has no arithmetic.
    """
    stream = torch.cuda.current_stream(tensor.device) if tensor.is_cuda else None
    return PendingStatistics(_values(tensor, wider), stream)


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


def read(found: Sequence[PendingStatistics]) -> list[tuple[Any, Any, Any, Any]]:
    """Read Max, Min, Mean and Norm of each, by one read-back a device."""
    values: dict[int, float] = {}
    alike: dict[torch.device, dict[torch.dtype, list[torch.Tensor]]] = {}
    for value in (value for one in found for value in one.values):
        alike.setdefault(value.device, {}).setdefault(value.dtype, []).append(value)
    for stream in {one.stream for one in found if one.stream is not None}:
        # Not for the whole device: what others send may depend on what this process does next.
        torch.cuda.current_stream(stream.device).wait_stream(stream)
    for groups in alike.values():
        together = torch.cat([torch.stack(group).double() for group in groups.values()])
        order = [value for group in groups.values() for value in group]
        values.update(zip(map(id, order), together.tolist(), strict=True))
    return [_told([values[id(value)] for value in one.values]) for one in found]


def _told(values: list[float]) -> tuple[Any, Any, Any, Any]:
    if len(values) == 2:
        return bool(values[0]), bool(values[1]), None, None
    if len(values) == 1:
        return values[0], values[0], values[0], values[0]
    maximum, minimum, mean, norm = values or (None,) * 4
    return maximum, minimum, mean, norm
