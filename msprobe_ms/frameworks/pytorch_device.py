"""A tensor's figures computed on its device and left there; those of many are read back at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

#: Figures of one tensor as 0-d tensors on its device: Max, Min, Mean and Norm; of booleans the first two; of a scalar
#: its value; of an empty tensor none.
Figures = tuple[torch.Tensor, ...]


def is_on_device(tensor: torch.Tensor) -> bool:
    return tensor.is_cuda


def figures(tensor: torch.Tensor, wider: torch.dtype | None) -> Figures:
    """The figures of a dense tensor, by reductions that nobody waits for.

    They are those of ``summary.statistics``, sums in double: of magnitudes of complex numbers, of booleans Max and Min.
    ``wider`` is a dtype that holds the values of one that has no arithmetic.
    """
    if tensor.numel() == 0:
        return ()
    if tensor.dtype == torch.bool:
        return tensor.any(), tensor.all()
    if tensor.is_complex():
        tensor = tensor.to(wider or tensor.dtype).abs()
    if not tensor.is_floating_point():
        tensor = tensor.double()
    elif tensor.element_size() == 1:
        tensor = tensor.float()
    if tensor.dim() == 0:
        return (tensor.clone(),)  # what is written into it later is not what it holds now
    minimum, maximum = torch.aminmax(tensor)
    # With a dtype, sums widen element by element: no wider copy of the tensor is made.
    return maximum, minimum, tensor.mean(dtype=torch.float64), torch.linalg.vector_norm(tensor, dtype=torch.float64)


def read(found: Sequence[Figures]) -> list[tuple[Any, Any, Any, Any]]:
    """Max, Min, Mean and Norm of each, by one read-back a device."""
    values: dict[int, float] = {}
    alike: dict[torch.device, dict[torch.dtype, list[torch.Tensor]]] = {}
    for figure in (figure for one in found for figure in one):
        alike.setdefault(figure.device, {}).setdefault(figure.dtype, []).append(figure)
    for device, groups in alike.items():
        if device.type == "cuda":
            torch.cuda.synchronize(device)  # they may come from several streams
        together = torch.cat([torch.stack(group).double() for group in groups.values()])
        order = [figure for group in groups.values() for figure in group]
        values.update(zip(map(id, order), together.tolist(), strict=True))
    return [_told(one, [values[id(figure)] for figure in one]) for one in found]


def _told(one: Figures, values: list[float]) -> tuple[Any, Any, Any, Any]:
    if len(values) == 2:
        return bool(values[0]), bool(values[1]), None, None
    if len(values) == 1:
        return (values[0],) * 4
    maximum, minimum, mean, norm = values or (None,) * 4
    return maximum, minimum, mean, norm
