"""Twins of functions that add, multiply or count along axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from msprobe_ms.frameworks.pytorch.mindspore_twins.common import Axes, dims
from msprobe_ms.frameworks.pytorch.mindspore_twins.registry import twin


@twin("Functional.mean")
def mean(x: Any, axis: Axes = None, keep_dims: bool = False) -> Any:
    return torch.mean(x, dims(x, axis), keep_dims)


@twin("Functional.reduce_mean")
def reduce_mean(x: Any, axis: Axes = ()) -> Any:
    return torch.mean(x, dims(x, axis))


@twin("Functional.reduce_sum")
def reduce_sum(x: Any, axis: Axes = ()) -> Any:
    return torch.sum(x, dims(x, axis))


@twin("Functional.reduce_max")
def reduce_max(x: Any, axis: Axes = ()) -> Any:
    return torch.amax(x, dims(x, axis))


@twin("Functional.reduce_min")
def reduce_min(x: Any, axis: Axes = ()) -> Any:
    return torch.amin(x, dims(x, axis))


@twin("Functional.prod")
def prod(input: Any, axis: Axes = None, keep_dims: bool = False, dtype: torch.dtype | None = None) -> Any:
    result = input if dtype is None else input.to(dtype)
    axes = sorted((axis % input.dim() for axis in dims(input, axis)), reverse=True)
    for each in axes:
        result = torch.prod(result, each, keep_dims)
    return result if axes else torch.prod(result)


@twin("Tensor.prod")
def tensor_prod(
    input: Any,
    axis: Axes = None,
    keep_dims: bool = False,
    dtype: torch.dtype | None = None,
    *,
    dim: Axes = None,
    keepdim: bool = False,
) -> Any:
    return prod(input, axis if dim is None else dim, keep_dims or keepdim, dtype)


@twin("Functional.all")
def all_true(input: Any, axis: Axes = None, keep_dims: bool = False) -> Any:
    return torch.all(input, dims(input, axis), keep_dims)


@twin("Functional.any")
def any_true(input: Any, axis: Axes = None, keep_dims: bool = False) -> Any:
    return torch.any(input, dims(input, axis), keep_dims)


@twin("Tensor.all")
def tensor_all(
    input: Any, axis: Axes = None, keep_dims: bool = False, *, dim: Axes = None, keepdim: bool = False
) -> Any:
    return all_true(input, axis if dim is None else dim, keep_dims or keepdim)


@twin("Tensor.any")
def tensor_any(
    input: Any, axis: Axes = None, keep_dims: bool = False, *, dim: Axes = None, keepdim: bool = False
) -> Any:
    return any_true(input, axis if dim is None else dim, keep_dims or keepdim)


@twin("Functional.nansum")
def nansum(input: Any, axis: Axes = None, keepdims: bool = False, *, dtype: torch.dtype | None = None) -> Any:
    return torch.nansum(input, dims(input, axis), keepdims, dtype=dtype)


@twin("Tensor.nansum")
def tensor_nansum(
    input: Any,
    axis: Axes = None,
    keepdims: bool = False,
    *,
    dtype: torch.dtype | None = None,
    dim: Axes = None,
    keepdim: bool = False,
) -> Any:
    return nansum(input, axis if dim is None else dim, keepdims or keepdim, dtype=dtype)


@twin("Functional.std")
def std(input: Any, axis: Axes = None, ddof: int = 0, keepdims: bool = False) -> Any:
    return torch.std(input, dims(input, axis), correction=int(ddof), keepdim=keepdims)


@twin("Functional.var")
def var(input: Any, axis: Axes = None, ddof: int = 0, keepdims: bool = False) -> Any:
    return torch.var(input, dims(input, axis), correction=int(ddof), keepdim=keepdims)


@twin("Functional.std_mean")
def std_mean(input: Any, axis: Axes = None, ddof: int = 0, keepdims: bool = False) -> Any:
    return torch.std_mean(input, dims(input, axis), correction=int(ddof), keepdim=keepdims)


@twin("Functional.var_mean")
def var_mean(input: Any, axis: Axes = None, ddof: int = 0, keepdims: bool = False) -> Any:
    return torch.var_mean(input, dims(input, axis), correction=int(ddof), keepdim=keepdims)


def _spread(reduce: Callable[..., Any], self: Any, positional: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """``(axis=None, ddof=0, keepdims=False)`` or ``(dim=None, *, correction=1, keepdim=False)``."""
    given = dict(zip(("axis", "ddof", "keepdims"), positional, strict=False)) | options
    of_torch = bool({"dim", "correction", "keepdim"} & given.keys())
    correction = given.get("correction", 1) if of_torch else int(given.get("ddof", 0))
    keepdim = given.get("keepdim", given.get("keepdims", False))
    return reduce(self, dims(self, given.get("dim", given.get("axis"))), correction=correction, keepdim=keepdim)


@twin("Tensor.std")
def tensor_std(self: Any, *positional: Any, **options: Any) -> Any:
    return _spread(torch.std, self, positional, options)


@twin("Tensor.var")
def tensor_var(self: Any, *positional: Any, **options: Any) -> Any:
    return _spread(torch.var, self, positional, options)


@twin("Tensor.mean")
def tensor_mean(
    self: Any,
    axis: Axes = None,
    keep_dims: bool = False,
    *,
    dtype: torch.dtype | None = None,
    dim: Axes = None,
    keepdim: bool = False,
) -> Any:
    return torch.mean(self, dims(self, axis if dim is None else dim), keep_dims or keepdim, dtype=dtype)


@twin("Tensor.sum")
def tensor_sum(self: Any, *positional: Any, **options: Any) -> Any:
    """``sum(dim=None, keepdim=False, *, dtype)`` or ``sum(axis=None, dtype=None, keepdims=False, initial=None)``."""
    axis = positional[0] if positional else options.get("dim", options.get("axis"))
    dtype, keepdim = options.get("dtype"), options.get("keepdim", options.get("keepdims", False))
    for value in positional[1:]:
        if isinstance(value, bool):
            keepdim = value
        elif isinstance(value, torch.dtype):
            dtype = value
    result = torch.sum(self, dims(self, axis), keepdim, dtype=dtype)
    return result + options["initial"] if options.get("initial") is not None else result


@twin("Tensor.ptp")
def ptp(self: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    return torch.amax(self, dims(self, axis), keepdims) - torch.amin(self, dims(self, axis), keepdims)


@twin("Functional.count_nonzero")
def count_nonzero(x: Any, axis: Axes = (), keep_dims: bool = False, dtype: torch.dtype = torch.int32) -> Any:
    return torch.sum(x != 0, dims(x, axis), keep_dims).to(dtype)


@twin("Tensor.count_nonzero")
def tensor_count_nonzero(
    self: Any, axis: Axes = (), keep_dims: bool = False, dtype: torch.dtype | None = None, *, dim: Axes = None
) -> Any:
    return count_nonzero(self, axis if dim is None else dim, keep_dims, dtype or torch.int32)


@twin("Functional.trapz")
def trapz(y: Any, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Any:
    return torch.trapz(y, dx=dx, dim=dim) if x is None else torch.trapz(y, x, dim=dim)


@twin("Functional.vecdot")
def vecdot(x: Any, y: Any, *, axis: int = -1) -> Any:
    return torch.linalg.vecdot(x, y, dim=axis)


@twin("Primitive.Bincount")
def bincount(array: Any, size: Any, weights: Any) -> Any:
    return torch.bincount(array, weights, int(size))[: int(size)]


@twin("Functional.cumsum")
def cumsum(x: Any, axis: int, dtype: torch.dtype | None = None) -> Any:
    return torch.cumsum(x, axis, dtype=dtype)


@twin("Mint.cumsum")
def mint_cumsum(input: Any, dim: int, dtype: torch.dtype | None = None) -> Any:
    return torch.cumsum(input, dim, dtype=dtype)


@twin("Functional.cumprod", "Tensor.cumprod", "Mint.cumprod")
def cumprod(input: Any, dim: int, dtype: torch.dtype | None = None) -> Any:
    return torch.cumprod(input, dim, dtype=dtype)


@twin("Tensor.cumsum")
def tensor_cumsum(
    self: Any, axis: int | None = None, dtype: torch.dtype | None = None, *, dim: int | None = None
) -> Any:
    chosen = axis if dim is None else dim
    return torch.cumsum(self.flatten(), 0, dtype=dtype) if chosen is None else torch.cumsum(self, chosen, dtype=dtype)
