"""Activations. g is the gradient of y, s(x) = 1 / (1 + exp(-x)) the logistic function."""

from __future__ import annotations

import math
from typing import cast

import numpy as np

from msprobe_ms.accuracy.references.reference import Array, Computed, NotReproducible
from msprobe_ms.support.translation import tr

#: The slope of the logistic function that fast_gelu puts in place of the normal distribution's.
_FAST_GELU_SLOPE = 1.702
_SQRT_HALF = math.sqrt(0.5)
_NORMAL_DENSITY_AT_0 = 1 / math.sqrt(2 * math.pi)
#: The tanh form: tanh(sqrt(2/pi) * (x + 0.044715 x^3)).
_TANH_SCALE, _TANH_CUBIC = math.sqrt(2 / math.pi), 0.044715


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), with no exponential of a positive number."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def normal_distribution(x: Array) -> Array:
    """Phi(x) = erfc(-x / sqrt(2)) / 2, exact also where it is tiny."""
    erfc = np.frompyfunc(math.erfc, 1, 1)
    return cast(Array, np.asarray(erfc(-x * _SQRT_HALF), np.float64) * 0.5)


def gelu(x: Array, approximate: str = "none") -> Computed:
    """``none``: y = x Phi(x), dx = g (Phi(x) + x phi(x)).

    ``tanh``: y = x (1 + t) / 2 with t = tanh(sqrt(2/pi) (x + 0.044715 x^3)),
    dx = g ((1 + t) / 2 + x (1 - t^2) sqrt(2/pi) (1 + 3 * 0.044715 x^2) / 2).
    """
    if approximate == "none":
        below = normal_distribution(x)
        slope = below + x * _NORMAL_DENSITY_AT_0 * np.exp(-0.5 * x * x)
    elif approximate == "tanh":
        inner = _TANH_SCALE * (x + _TANH_CUBIC * x**3)
        # (1 + tanh(u)) / 2 = s(2u), and its derivative 2 s (1 - s): nothing cancels where x is far below 0.
        below = sigmoid(2 * inner)
        slope = below + x * 2 * below * sigmoid(-2 * inner) * _TANH_SCALE * (1 + 3 * _TANH_CUBIC * x * x)
    else:
        raise NotReproducible(
            tr("no form {approximate} of gelu is known; none and tanh are", approximate=repr(approximate))
        )
    return Computed((x * below,), lambda g: {"x": g * slope})


def fast_gelu(x: Array) -> Computed:
    """y = x s(1.702 x), which x exp(0.851 (x - |x|)) / (1 + exp(-1.702 |x|)) equals;
    dx = g (s + 1.702 x s (1 - s)).
    """
    s = sigmoid(_FAST_GELU_SLOPE * x)
    rest = sigmoid(-_FAST_GELU_SLOPE * x)
    return Computed((x * s,), lambda g: {"x": g * (s + _FAST_GELU_SLOPE * x * s * rest)})


def fast_gelu_backward(grad: Array, x: Array) -> Computed:
    """The gradient of ``fast_gelu``, as an operator."""
    backward = fast_gelu(x).backward
    assert backward is not None
    return Computed((backward(grad)["x"],))


def silu(x: Array) -> Computed:
    """y = x s(x); dx = g s(x) (1 + x (1 - s(x)))."""
    s = sigmoid(x)
    return Computed((x * s,), lambda g: {"x": g * s * (1 + x * sigmoid(-x))})


def mish(x: Array) -> Computed:
    """y = x t with t = tanh(log(1 + exp(x))); dx = g (t + x (1 - t^2) s(x))."""
    softplus = np.logaddexp(0.0, x)
    # tanh(log(w)) = (w^2 - 1) / (w^2 + 1) with w = 1 + exp(x); 1 - t^2 from the hyperbolic cosine loses no digits.
    t = np.tanh(softplus)
    slope = np.cosh(np.minimum(softplus, 350.0)) ** -2.0
    return Computed((x * t,), lambda g: {"x": g * (t + x * slope * sigmoid(x))})


def swiglu(x: Array, dim: int = -1) -> Computed:
    """(a, b) = the halves of x along ``dim``; y = a s(a) b; da = g b s(a) (1 + a (1 - s(a))), db = g a s(a)."""
    if x.shape[dim] % 2:
        raise NotReproducible(tr("axis {dim} of shape {shape} has no halves", dim=dim, shape=x.shape))
    a, b = np.split(x, 2, axis=dim)
    gate = silu(a)
    assert gate.backward is not None
    (swish,), of_gate = gate.outputs, gate.backward
    return Computed((swish * b,), lambda g: {"x": np.concatenate([of_gate(g * b)["x"], g * swish], axis=dim)})
