"""Cross entropy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from msprobe_ms.accuracy.references.reference import Array, Computed, Gradient, NotJudged, NotReproducible
from msprobe_ms.support.translation import tr

_UNWEIGHTED = tr("frameworks do not differentiate the weights where targets are indices")


def cross_entropy(
    x: Array,
    target: Array,
    weight: Array | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Computed:
    """loss = -sum over classes of t weight log(softmax(x)), summed, averaged or left as it is.

    t is the target, of indices the one-hot; with smoothing e it is (1 - e) t + e / classes. Elements of
    ``ignore_index`` give 0. The average of indices is weighted with the weights of their classes, that of probabilities
    divides by the number of elements. x: (classes,), (batch, classes) or (batch, classes, …).
    dx = g (softmax(x) sum(t weight) - t weight), divided as the loss is; dweight and dtarget follow from the same sum.
    """
    axis = 0 if x.ndim == 1 else 1
    classes = x.shape[axis]
    scores = np.moveaxis(x, axis, -1)
    log_p = scores - scores.max(axis=-1, keepdims=True)
    log_p = log_p - np.log(np.exp(log_p).sum(axis=-1, keepdims=True))
    w = np.ones(classes) if weight is None else weight

    of_indices = target.dtype.kind in "iu"
    if of_indices:
        counted = target != ignore_index
        index = np.where(counted, target, 0)
        if np.any((index < 0) | (index >= classes)):
            raise NotReproducible(tr("a target beyond the {classes} classes", classes=classes))
        one_hot = (index[..., np.newaxis] == np.arange(classes)) * counted[..., np.newaxis]
        divisor = np.sum(w[index] * counted)
    else:
        counted, one_hot = np.ones(log_p.shape[:-1], bool), np.moveaxis(target, axis, -1)
        divisor = np.float64(counted.size)
    t = (1 - label_smoothing) * one_hot + label_smoothing / classes * counted[..., np.newaxis]
    losses = -np.sum(t * w * log_p, axis=-1)
    if reduction not in ("none", "mean", "sum"):
        raise NotReproducible(
            tr("no reduction {reduction} is known; none, mean and sum are", reduction=repr(reduction))
        )
    loss = losses if reduction == "none" else losses.sum() / (divisor if reduction == "mean" else 1.0)

    def backward(g: Array) -> Mapping[str, Gradient]:
        share = np.broadcast_to(g / divisor if reduction == "mean" else g, losses.shape)[..., np.newaxis]
        tw = t * w
        dx = share * (np.exp(log_p) * tw.sum(axis=-1, keepdims=True) - tw)
        each = tuple(range(losses.ndim))
        dweight = NotJudged(_UNWEIGHTED) if of_indices else np.sum(-share * t * log_p, axis=each)
        return {
            "x": np.moveaxis(dx, -1, axis),
            "weight": dweight,
            "target": np.moveaxis(-share * (1 - label_smoothing) * w * log_p, -1, axis),
        }

    return Computed((np.asarray(loss),), backward)
