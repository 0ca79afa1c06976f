"""Twins of functions that make tensors of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from msprobe_ms.frameworks.pytorch.mindspore_twins.common import sizes
from msprobe_ms.frameworks.pytorch.mindspore_twins.registry import twin


@twin("Functional.arange", "Mint.arange")
def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: torch.dtype | None = None) -> Any:
    return torch.arange(start, dtype=dtype) if end is None else torch.arange(start, end, step, dtype=dtype)


@twin("Functional.range")
def range_of(start: Any, end: Any, step: Any, maxlen: int = 1000000) -> Any:
    return torch.arange(start, end, step)


@twin("Functional.linspace")
def linspace(start: Any, end: Any, steps: int) -> Any:
    return torch.linspace(float(start), float(end), int(steps))


@twin("Functional.logspace")
def logspace(start: Any, end: Any, steps: int, base: float = 10, *, dtype: torch.dtype = torch.float32) -> Any:
    return torch.logspace(start, end, steps, base, dtype=dtype)


@twin("Functional.eye", "Mint.eye")
def eye(n: int, m: int | None = None, dtype: torch.dtype | None = None) -> Any:
    return torch.eye(n, n if m is None else m, dtype=dtype)


@twin("Functional.full")
def full(size: Any, fill_value: Any, *, dtype: torch.dtype = torch.int64) -> Any:
    """Integers where no dtype is named, as MindSpore's documentation has it."""
    return torch.full(sizes([size]), fill_value).to(dtype)


@twin("Mint.ones")
def mint_ones(size: Any, *, dtype: torch.dtype | None = None) -> Any:
    return torch.ones(sizes([size]), dtype=dtype)


@twin("Functional.ones")
def ones(shape: Any, dtype: torch.dtype | None = None) -> Any:
    return torch.ones(sizes([shape]), dtype=dtype)


@twin("Functional.zeros", "Mint.zeros")
def zeros(size: Any, dtype: torch.dtype | None = None) -> Any:
    return torch.zeros(sizes([size]), dtype=dtype)


@twin("Functional.fill")
def fill(type: torch.dtype | None, shape: Sequence[int], value: Any) -> Any:
    return torch.full(tuple(shape), value, dtype=type)


@twin("Functional.fills", "Tensor.fills")
def fills(x: Any, value: Any) -> Any:
    return torch.full_like(x, value)


@twin("Tensor.fill")
def tensor_fill(self: Any, value: Any) -> Any:
    return torch.full_like(self, value)


@twin("Tensor.new_zeros")
def new_zeros(self: Any, size: Any, dtype: torch.dtype | None = None) -> Any:
    return self.new_zeros(sizes([size]), dtype=dtype)


@twin("Tensor.new_ones")
def new_ones(self: Any, size: Any, dtype: torch.dtype | None = None) -> Any:
    return self.new_ones(sizes([size]), dtype=dtype)


@twin("Tensor.new_full")
def new_full(self: Any, size: Any, fill_value: Any, *, dtype: torch.dtype | None = None) -> Any:
    return self.new_full(sizes([size]), fill_value, dtype=dtype)


@twin("Functional.tril_indices")
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: torch.dtype = torch.int64) -> Any:
    return torch.tril_indices(row, col, offset, dtype=dtype)


@twin("Functional.triu_indices")
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: torch.dtype = torch.int64) -> Any:
    return torch.triu_indices(row, col, offset, dtype=dtype)


@twin("Functional.one_hot")
def one_hot(indices: Any, depth: int, on_value: Any = 1, off_value: Any = 0, axis: int = -1) -> Any:
    axis = axis % (indices.dim() + 1)
    classes = torch.arange(depth).reshape(-1, *[1] * (indices.dim() - axis))
    chosen = indices.unsqueeze(axis) == classes
    return torch.where(chosen, torch.as_tensor(on_value), torch.as_tensor(off_value))


@twin("Functional.kaiser_window")
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: torch.dtype | None = None
) -> Any:
    return torch.kaiser_window(window_length, periodic, beta, dtype=dtype)


@twin("Functional.hamming_window")
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: torch.dtype | None = None,
) -> Any:
    return torch.hamming_window(window_length, periodic, alpha, beta, dtype=dtype)


@twin("Functional.hann_window")
def hann_window(window_length: int, periodic: bool = True, *, dtype: torch.dtype | None = None) -> Any:
    return torch.hann_window(window_length, periodic, dtype=dtype)


@twin("Functional.bartlett_window")
def bartlett_window(window_length: Any, periodic: bool = True, *, dtype: torch.dtype | None = None) -> Any:
    return torch.bartlett_window(int(window_length), periodic, dtype=dtype)


@twin("Functional.blackman_window")
def blackman_window(window_length: Any, periodic: bool = True, *, dtype: torch.dtype | None = None) -> Any:
    return torch.blackman_window(int(window_length), periodic, dtype=dtype)


@twin("Functional.fftfreq")
def fftfreq(n: int, d: float = 1.0, dtype: torch.dtype | None = None) -> Any:
    return torch.fft.fftfreq(n, d, dtype=dtype)


@twin("Functional.rfftfreq")
def rfftfreq(n: int, d: float = 1.0, dtype: torch.dtype | None = None) -> Any:
    return torch.fft.rfftfreq(n, d, dtype=dtype)
