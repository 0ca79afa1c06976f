"""Tensors of every kind, to have their figures computed where a device's are; on the CPU until they are moved."""

from __future__ import annotations

import math
from typing import Any

import torch
from recording import FIGURES, same_sketch

from msprobe_ms.frameworks.pytorch.framework import PyTorch
from msprobe_ms.recording.output.figures import FigureReader

#: What docs/format.md, "Statistics", allows two computations of one tensor to differ by.
NARROW, EXACT = 4e-6, 1e-12

_DTYPES = (
    torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.complex64, torch.complex128, torch.bool,
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64,
    torch.float8_e4m3fn, torch.float8_e5m2,
)  # fmt: skip

#: One copied, one reduced, both in C order; one whose elements are neither whole blocks nor whole rows.
_SIZES = (300, 1 << 17, 70_001)


def _of(dtype: torch.dtype, size: int) -> torch.Tensor:
    if dtype.is_complex:
        return torch.randn(size, dtype=dtype)
    if dtype == torch.bool:
        return torch.rand(size) > 0.7
    numbers = torch.randn(size) * 30
    unsigned = not dtype.is_floating_point and torch.iinfo(dtype).min == 0
    return (numbers.abs() if unsigned else numbers).to(dtype)


def tensors() -> dict[str, torch.Tensor]:
    """Tensors by what they are."""
    found = {f"{dtype} {size}": _of(dtype, size) for dtype in _DTYPES for size in _SIZES}
    found |= {f"{dtype} scalar": _of(dtype, 1)[0] for dtype in _DTYPES}
    found |= {f"{dtype} empty": _of(dtype, 1)[:0] for dtype in _DTYPES}
    large = torch.randn(1200, 1100)
    special = large.clone().reshape(-1)
    special[70_000] = torch.inf
    mixed = special.clone()
    mixed[3] = -torch.inf
    return found | {
        "transposed": torch.randn(30, 40).t(),
        "large": large,
        "large, transposed": large.t(),
        "large, every second": large[:, ::2],
        "large, three dimensions": torch.randn(40, 300, 120).permute(2, 0, 1),
        "expanded": torch.randn(200, 1).expand(200, 300),
        "conjugate": torch.randn(50, dtype=torch.complex64).conj(),
        "negative view": torch.randn(50, dtype=torch.complex64).conj().imag,
        "infinity": special,
        "infinities": mixed,
        "NaN": torch.where(special > 2, torch.nan, large.reshape(-1)),
        "few NaN": torch.tensor([1.0, math.nan, -1.0]),
        "negative zeros": torch.full((5,), -0.0),
        "large, negative zeros": torch.full((20_000,), -0.0),
        "tiny": torch.full((20_000,), 1e-42),
        "overflows in float16": torch.full((20_000,), 60_000.0).half(),
        "large numbers": torch.full((20_000,), 3e38),
        "larger numbers": torch.randn(20_000, dtype=torch.float64) * 1e200,
        "few larger numbers": torch.randn(4, dtype=torch.float64) * 1e200,
        "small numbers": torch.full((20_000,), 1e-30),
        "sparse": torch.eye(200).to_sparse(),
    }


def host_figures(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Max, Min, Mean, Norm and sketch as recording has them of a tensor of the CPU."""
    reader = FigureReader(PyTorch(), lambda on_device: on_device, md5=False, sketch=True)
    found = reader.of_tensor(tensor, exact=False)
    return (*found.statistics, found.sketch)


def assert_as_on_host(name: str, tensor: torch.Tensor, found: tuple[Any, ...]) -> None:
    """The figures ``found`` of a tensor, given on the CPU, are those of the CPU, as near as is said."""
    expected = host_figures(tensor)
    narrow = tensor.is_complex() or (tensor.is_floating_point() and tensor.dtype != torch.float64)
    rounding = NARROW if narrow and tensor.dtype != torch.complex128 else EXACT
    magnitude = float(tensor.to_dense().to(torch.complex128).abs().mean()) if tensor.numel() else 0.0
    for figure, one, other in zip(FIGURES, expected, found, strict=False):
        place = name, figure, one, other
        assert type(one) is type(other), place
        if not isinstance(one, float) or not math.isfinite(one):
            assert one == other or (one != one and other != other), place
            continue
        assert repr(other) != "-0.0", place
        scale = magnitude if figure == "Mean" else abs(one)
        # A magnitude of a complex number is rounded by whoever computes it.
        exactly = figure in ("Max", "Min") and not tensor.is_complex()
        assert abs(one - other) <= (0.0 if exactly else rounding * scale), place
    assert same_sketch(expected[4], found[4], rounding), name
