"""Small helpers of the twins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

#: An axis, several, or none, which means all, as empty ones do.
Axes = int | Sequence[int] | None


def dims(tensor: Any, axis: Axes) -> tuple[int, ...]:
    """Return the axes that are meant: all where none is named."""
    if axis is None or axis == () or axis == []:
        return tuple(range(tensor.dim()))
    return (axis,) if isinstance(axis, int) else tuple(axis)


def sizes(values: Sequence[Any]) -> tuple[int, ...]:
    """Return sizes that came one by one or as one sequence, some perhaps as tensors."""
    if len(values) == 1 and (isinstance(values[0], (tuple, list)) or getattr(values[0], "ndim", 0)):
        values = values[0]
    return tuple(int(value) for value in values)


def tensors(values: Any) -> Sequence[Any]:
    """Return tensors that came one by one or as one sequence."""
    return values[0] if len(values) == 1 and isinstance(values[0], (tuple, list)) else values


def several(value: int | Sequence[int], count: int) -> tuple[int, ...]:
    """Return one number for each of ``count`` spatial axes."""
    return (value,) * count if isinstance(value, int) else tuple(value)


def like(value: Any, tensor: Any) -> Any:
    """Return a number as a tensor of the dtype of another; tensors stay."""
    return value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=tensor.dtype)
