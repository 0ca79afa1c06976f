"""Softmax with a mask."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from msprobe_ms.accuracy.references.reference import Array, Computed, Gradient, NotReproducible
from msprobe_ms.support.translation import tr

#: What the operator puts in place of dropped elements: large, but a row of nothing else has equal shares.
_DROPPED = -10000.0


def softmax(x: Array, axis: int = -1) -> Array:
    """exp(x - max) / sum of the same."""
    exponentials = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=axis, keepdims=True))


def _dropped(mask: Array | None, shape: tuple[int, ...], fixed_triu_mask: bool) -> Array:
    """Which elements are dropped; the upper triangle is fixed by the last two axes alone."""
    if fixed_triu_mask:
        return np.triu(np.ones(shape[-2:], bool), 1)
    if mask is None:
        raise NotReproducible(tr("no mask is given"))
    return mask != 0


def scaled_masked_softmax(x: Array, mask: Array | None, scale: float = 1.0, fixed_triu_mask: bool = False) -> Computed:
    """y = softmax over the last axis of scale * x, -10000 where the mask is true; dx = scale y (g - sum(g y)), 0 there.

    ``fixed_triu_mask``: all above the diagonal is dropped, and the mask given is not read.
    """
    dropped = _dropped(mask, x.shape, fixed_triu_mask)
    y = softmax(np.where(dropped, _DROPPED, x * scale))

    def backward(g: Array) -> Mapping[str, Gradient]:
        return {"x": softmax_gradient(g, y, dropped, scale)}

    return Computed((y,), backward)


def softmax_gradient(g: Array, y: Array, dropped: Array, scale: float) -> Array:
    """scale y (g - sum(g y)), 0 where dropped."""
    return np.where(dropped, 0.0, scale * y * (g - np.sum(g * y, axis=-1, keepdims=True)))


def scaled_masked_softmax_backward(
    grad: Array, y: Array, mask: Array | None, scale: float = 1.0, fixed_triu_mask: bool = False
) -> Computed:
    """The gradient of ``scaled_masked_softmax`` from its output, as an operator."""
    return Computed((softmax_gradient(grad, y, _dropped(mask, y.shape, fixed_triu_mask), scale),))
