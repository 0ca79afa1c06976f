"""Twins of Bessel and incomplete gamma functions, which torch has without all derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import special

from msprobe_ms.frameworks.pytorch.mindspore_twins.registry import twin


def _differentiable(value: Callable[[Any], Any], slope: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of one variable, with its derivative."""

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: Any) -> Any:
            context.save_for_backward(x)
            return value(x)

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            return gradient * slope(*context.saved_tensors)

    def function(x: Any) -> Any:
        return Function.apply(x)

    return function


_j0, _j1, _y0, _y1 = special.bessel_j0, special.bessel_j1, special.bessel_y0, special.bessel_y1
_k0, _k1 = special.modified_bessel_k0, special.modified_bessel_k1
_k0e, _k1e = special.scaled_modified_bessel_k0, special.scaled_modified_bessel_k1

# Digital Library of Mathematical Functions, 10.6 and 10.29; k0e and k1e are exp(x) times k0 and k1.
twin("Functional.bessel_j0")(_differentiable(_j0, lambda x: -_j1(x)))
twin("Functional.bessel_j1")(_differentiable(_j1, lambda x: _j0(x) - _j1(x) / x))
twin("Functional.bessel_y0")(_differentiable(_y0, lambda x: -_y1(x)))
twin("Functional.bessel_y1")(_differentiable(_y1, lambda x: _y0(x) - _y1(x) / x))
twin("Functional.bessel_k0")(_differentiable(_k0, lambda x: -_k1(x)))
twin("Functional.bessel_k1")(_differentiable(_k1, lambda x: -_k0(x) - _k1(x) / x))
twin("Functional.bessel_k0e")(_differentiable(_k0e, lambda x: _k0e(x) - _k1e(x)))
twin("Functional.bessel_k1e")(_differentiable(_k1e, lambda x: _k1e(x) - _k0e(x) - _k1e(x) / x))


#: Distance of the points of a five-point difference: in float64 its error is about 1e-11.
_STEP = 1e-3


def _with_first_slope(value: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A function whose derivative with respect to its first variable is taken by differences."""

    class Slope(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, first: Any, second: Any) -> Any:
            context.save_for_backward(first, second)
            return torch.zeros_like(value(first, second))

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            first, second = context.saved_tensors
            near, far = (value(first + step, second) - value(first - step, second) for step in (_STEP, 2 * _STEP))
            slope = gradient * (8 * near - far) / (12 * _STEP)
            return slope.sum_to_size(first.shape), None

    def function(input: Any, other: Any) -> Any:
        return value(input.detach(), other) + Slope.apply(input, other)

    return function


twin("Functional.igamma", "Tensor.igamma")(_with_first_slope(torch.igamma))
twin("Functional.igammac", "Tensor.igammac")(_with_first_slope(torch.igammac))
