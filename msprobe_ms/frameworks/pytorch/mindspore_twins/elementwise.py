"""Twins of functions that work element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from msprobe_ms.frameworks.pytorch.mindspore_twins.common import like
from msprobe_ms.frameworks.pytorch.mindspore_twins.registry import twin


@twin("Functional.accumulate_n", "Functional.addn")
def add_all(x: Sequence[Any]) -> Any:
    return sum(x[1:], x[0])


@twin("Tensor.approximate_equal")
def tensor_approximate_equal(self: Any, other: Any, tolerance: float = 1e-5) -> Any:
    return (self - other).abs() < tolerance


@twin("Functional.approximate_equal")
def approximate_equal(x: Any, y: Any, tolerance: float = 1e-5) -> Any:
    return (x - y).abs() < tolerance


@twin("Functional.maximum", "Tensor.maximum")
def maximum(input: Any, other: Any) -> Any:
    return torch.maximum(*_both(input, other))


@twin("Functional.minimum", "Tensor.minimum")
def minimum(input: Any, other: Any) -> Any:
    return torch.minimum(*_both(input, other))


def _both(one: Any, other: Any) -> tuple[Any, Any]:
    """Both as tensors; one of them may be a number."""
    tensor = one if isinstance(one, torch.Tensor) else other
    return like(one, tensor), like(other, tensor)


@twin("Functional.tensor_div")
def tensor_div(x: Any, y: Any) -> Any:
    """Of integers the quotient is cut."""
    one, other = _both(x, y)
    return torch.div(one, other, rounding_mode=None if one.is_floating_point() else "trunc")


@twin("Functional.floor_div")
def floor_div(x: Any, y: Any) -> Any:
    return torch.div(x, y, rounding_mode="floor")


@twin("Functional.truncate_div")
def truncate_div(x: Any, y: Any) -> Any:
    return torch.div(x, y, rounding_mode="trunc")


@twin("Functional.floor_divide", "Functional.tensor_floordiv", "Mint.floor_divide")
@twin("Tensor.floor_divide", "Tensor.__floordiv__")
def floor_divide(input: Any, other: Any) -> Any:
    """As ``torch.floor_divide``, with its derivative, which is zero."""
    return torch.div(input, other, rounding_mode="floor")


@twin("Tensor.floor_divide_", "Tensor.__ifloordiv__")
def floor_divide_in_place(self: Any, other: Any) -> Any:
    return self.div_(other, rounding_mode="floor")


@twin("Functional.xdivy", "Tensor.xdivy")
def xdivy(x: Any, y: Any) -> Any:
    x, y = (like(x, y), y) if isinstance(y, torch.Tensor) else (x, like(y, x))
    return torch.where(x == 0, torch.zeros_like(x / torch.ones_like(y)), x / torch.where(x == 0, torch.ones_like(y), y))


@twin("Functional.addcmul", "Tensor.addcmul", "Primitive.Addcmul")
def addcmul(input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Any:
    return input + value * tensor1 * tensor2


@twin("Functional.addcdiv", "Primitive.Addcdiv")
def addcdiv(input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Any:
    return input + value * tensor1 / tensor2


@twin("Functional.population_count")
def population_count(input_x: Any) -> Any:
    bits = 8 * input_x.element_size()
    wide = input_x.to(torch.int64)
    return sum((wide >> place) & 1 for place in range(bits)).to(torch.uint8)


@twin("Functional.clip_by_value")
def clip_by_value(x: Any, clip_value_min: Any = None, clip_value_max: Any = None) -> Any:
    if isinstance(x, (tuple, list)):
        return type(x)(torch.clamp(each, clip_value_min, clip_value_max) for each in x)
    return torch.clamp(x, clip_value_min, clip_value_max)


@twin("Functional.clip_by_norm")
def clip_by_norm(x: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Any:
    several = x if isinstance(x, (tuple, list)) else [x]
    norms = torch.stack([torch.linalg.vector_norm(each, norm_type) for each in several])
    factor = torch.clamp(max_norm / (torch.linalg.vector_norm(norms, norm_type) + 1e-6), max=1.0)
    clipped = [each * factor for each in several]
    return type(x)(clipped) if isinstance(x, (tuple, list)) else clipped[0]


@twin("Functional.clip_by_global_norm")
def clip_by_global_norm(x: Sequence[Any], clip_norm: float = 1.0, use_norm: None = None) -> Any:
    norm = torch.sqrt(sum((each**2).sum() for each in x))
    return tuple(each * clip_norm / torch.clamp(norm, min=clip_norm) for each in x)


@twin("Functional.nan_to_num", "Tensor.nan_to_num", "Mint.nan_to_num")
def nan_to_num(input: Any, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Any:
    return torch.nan_to_num(input, 0.0 if nan is None else nan, posinf, neginf)


@twin("Functional.logit", "Tensor.logit")
def logit(input: Any, eps: float | None = None) -> Any:
    return torch.logit(input, None if eps is None or eps < 0 else eps)


@twin("Functional.subtract", "Tensor.subtract")
def subtract(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    return input - alpha * other


@twin("Functional.bias_add")
def bias_add(input_x: Any, bias: Any) -> Any:
    return input_x + bias.reshape(-1, *[1] * (input_x.dim() - 2))


@twin("Tensor.__invert__")
def invert(self: Any) -> Any:
    """What ``~`` gives in MindSpore: a negation of truth values, also of integers."""
    return torch.logical_not(self)


@twin("Functional.cast", "Tensor.astype")
def cast(input: Any, dtype: torch.dtype, copy: bool = True) -> Any:
    return input.to(dtype) if isinstance(input, torch.Tensor) else torch.tensor(input, dtype=dtype)


@twin("Functional.type_as")
def type_as(input: Any, other: Any) -> Any:
    return input.to(other.dtype)


@twin("Tensor.__rmod__")
def reflected_mod(self: Any, other: Any) -> Any:
    return torch.remainder(like(other, self), self)


@twin("Tensor.__rfloordiv__")
def reflected_floordiv(self: Any, other: Any) -> Any:
    return torch.div(like(other, self), self, rounding_mode="floor")


@twin("Functional.erfinv_")
def erfinv_in_place(input: Any) -> Any:
    return input.erfinv_()


@twin("Functional.stop_gradient_")
def stop_gradient_in_place(input: Any) -> Any:
    return input.detach_()


@twin("Functional.assign")
def assign(variable: Any, value: Any) -> Any:
    return variable.copy_(value)


@twin("Functional.assign_add")
def assign_add(variable: Any, value: Any) -> Any:
    return variable.add_(value)


@twin("Functional.assign_sub")
def assign_sub(variable: Any, value: Any) -> Any:
    return variable.sub_(value)
