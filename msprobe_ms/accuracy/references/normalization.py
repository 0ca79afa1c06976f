"""Normalizations. g is the gradient of y; means run over the axes that are normalized.

Gradients of the statistics that an operator gives beside y (mean, reciprocal deviation) are not carried back, as
the operators themselves do not: they are there for the backward pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from msprobe_ms.accuracy.references.activation import silu
from msprobe_ms.accuracy.references.reference import (
    Array,
    Computed,
    Gradient,
    NotJudged,
    NotReproducible,
    sum_to,
)  # fmt: skip
from msprobe_ms.support.translation import tr


def _trailing(x: Array, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The last axes of x, which must have this shape."""
    if x.shape[x.ndim - len(shape) :] != shape:
        raise NotReproducible(tr("the last axes of shape {shape} are not {shape2}", shape=x.shape, shape2=shape))
    return tuple(range(x.ndim - len(shape), x.ndim))


def rms_norm(x: Array, gamma: Array, epsilon: float = 1e-6) -> Computed:
    """r = 1 / sqrt(mean(x^2) + epsilon) over gamma's axes; y = x r gamma; outputs y, r.

    n = x r; dx = r (g gamma - n mean(g gamma n)); dgamma = sum of g n over all axes but gamma's.
    """
    axes = _trailing(x, gamma.shape)
    r = 1 / np.sqrt(np.mean(x * x, axis=axes, keepdims=True) + epsilon)
    n = x * r

    def backward(g: Array, _: Array) -> Mapping[str, Gradient]:
        scaled = g * gamma
        return {
            "x": r * (scaled - n * np.mean(scaled * n, axis=axes, keepdims=True)),
            "gamma": sum_to(g * n, gamma.shape),
        }

    return Computed((n * gamma, r), backward)


def rms_norm_alone(
    x: Array, normalized_shape: int | tuple[int, ...], weight: Array | None = None, epsilon: float | None = None
) -> Computed:
    """``rms_norm`` with the arguments and the one output that PyTorch's own has; gamma may be missing."""
    if epsilon is None:
        raise NotReproducible(tr("its epsilon is that of the dtype, which the reference does not compute in"))
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    gamma = np.ones(shape) if weight is None else weight
    inner = rms_norm(x, gamma, epsilon)
    assert inner.backward is not None
    of_norm = inner.backward

    def backward(g: Array) -> Mapping[str, Gradient]:
        gradients = of_norm(g, g)
        return {"x": gradients["x"], "weight": gradients["gamma"]}

    return Computed(inner.outputs[:1], backward)


def add_rms_norm(x1: Array, x2: Array, gamma: Array, epsilon: float = 1e-6) -> Computed:
    """x = x1 + x2, normalized by ``rms_norm``; outputs y, r, x. dx1 = dx2 = its dx + the gradient of x."""
    x = x1 + x2
    inner = rms_norm(x, gamma, epsilon)
    assert inner.backward is not None
    of_norm = inner.backward

    def backward(g: Array, of_r: Array, of_x: Array) -> Mapping[str, Gradient]:
        gradients = of_norm(g, of_r)
        dx = gradients["x"] + of_x
        return {"x1": dx, "x2": dx, "gamma": gradients["gamma"]}

    return Computed((*inner.outputs, x), backward)


def layer_norm(
    x: Array,
    normalized_shape: int | tuple[int, ...],
    weight: Array | None = None,
    bias: Array | None = None,
    epsilon: float = 1e-5,
    with_statistics: bool = False,
) -> Computed:
    """n = (x - mean) r with r = 1 / sqrt(mean((x - mean)^2) + epsilon); y = n weight + bias; outputs y, or y, mean, r.

    d = g weight; dx = r (d - mean(d) - n mean(d n)); dweight = sum of g n, dbias = sum of g over the other axes.
    """
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    axes = _trailing(x, shape)
    mean = x.mean(axis=axes, keepdims=True)
    r = 1 / np.sqrt(np.mean((x - mean) ** 2, axis=axes, keepdims=True) + epsilon)
    n = (x - mean) * r
    y = n * (1.0 if weight is None else weight) + (0.0 if bias is None else bias)

    def backward(g: Array, *_: Array) -> Mapping[str, Gradient]:
        d = g if weight is None else g * weight
        return {
            "x": r * (d - d.mean(axis=axes, keepdims=True) - n * np.mean(d * n, axis=axes, keepdims=True)),
            "weight": sum_to(g * n, shape),
            "bias": sum_to(g, shape),
        }

    return Computed((y, mean, r) if with_statistics else (y,), backward)


def add_layer_norm(
    x1: Array, x2: Array, gamma: Array, beta: Array, epsilon: float = 1e-5, additional_output: bool = False
) -> Computed:
    """x = x1 + x2, normalized by ``layer_norm`` over its last axis; outputs y, mean, r, x."""
    x = x1 + x2
    inner = layer_norm(x, gamma.shape, gamma, beta, epsilon, with_statistics=True)
    assert inner.backward is not None
    of_norm = inner.backward

    def backward(g: Array, of_mean: Array, of_r: Array, of_x: Array | None) -> Mapping[str, Gradient]:
        gradients = of_norm(g, of_mean, of_r)
        dx = gradients["x"] if of_x is None else gradients["x"] + of_x
        return {"x1": dx, "x2": dx, "gamma": gradients["weight"], "beta": gradients["bias"]}

    total = x if additional_output else NotJudged(tr("not asked for"))
    return Computed((*inner.outputs, total), backward)


def group_norm(
    x: Array,
    groups: int,
    weight: Array | None = None,
    bias: Array | None = None,
    epsilon: float = 1e-5,
    with_statistics: bool = False,
) -> Computed:
    """``layer_norm`` over each of ``groups`` equal parts of axis 1 with all axes after it, weight and bias for each
    channel; outputs y, or y, mean, r, the two of shape (batch, groups). x: (batch, channels, …).
    """
    batch, channels = x.shape[:2]
    if groups < 1 or channels % groups:
        raise NotReproducible(tr("{channels} channels in {groups} groups", channels=channels, groups=groups))
    inner = layer_norm(x.reshape(batch, groups, -1), prod(x.shape[1:]) // groups, None, None, epsilon, True)
    assert inner.backward is not None
    of_norm = inner.backward
    normalized, mean, r = inner.outputs
    n = normalized.reshape(x.shape)
    by_channel = (channels, *[1] * (x.ndim - 2))
    scale = np.ones(by_channel) if weight is None else weight.reshape(by_channel)
    y = n * scale + (0.0 if bias is None else bias.reshape(by_channel))

    def backward(g: Array, *_: Array) -> Mapping[str, Gradient]:
        dx = of_norm((g * scale).reshape(normalized.shape))["x"]
        return {
            "x": dx.reshape(x.shape),
            "weight": sum_to(g * n, by_channel).reshape(channels),
            "bias": sum_to(g, by_channel).reshape(channels),
        }

    statistics = (mean.reshape(batch, groups), r.reshape(batch, groups))
    return Computed((y, *statistics) if with_statistics else (y,), backward)


def group_norm_silu(x: Array, weight: Array | None, bias: Array | None, groups: int, epsilon: float = 1e-5) -> Computed:
    """y s(y) of y = ``group_norm``(x), s the logistic function; outputs it, mean, r."""
    inner = group_norm(x, groups, weight, bias, epsilon, with_statistics=True)
    y, mean, r = inner.outputs
    outer = silu(y)
    assert inner.backward is not None and outer.backward is not None
    of_norm, of_silu = inner.backward, outer.backward
    return Computed((*outer.outputs, mean, r), lambda g, *_: of_norm(of_silu(g)["x"]))
