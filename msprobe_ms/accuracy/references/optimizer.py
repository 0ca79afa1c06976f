"""Steps of optimizers. They have no gradients; outputs are the parameter and its two moments afterwards.

m, v: the moments; g: the gradient. Powers of the betas arrive as operators take them, which is told at each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from msprobe_ms.accuracy.references.reference import Array, Computed, NotReproducible


def _moments(m: Array, v: Array, grad: Array, beta1: float, beta2: float) -> tuple[Array, Array]:
    """m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2."""
    return beta1 * m + (1 - beta1) * grad, beta2 * v + (1 - beta2) * grad * grad


def adam(
    out: Sequence[Array],
    grad: Array,
    beta1_power: float,
    beta2_power: float,
    lr: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    use_nesterov: Any = False,
) -> Computed:
    """var = var - lr sqrt(1 - beta2_power) / (1 - beta1_power) * m / (sqrt(v) + epsilon) with the new moments.

    ``use_nesterov``: beta1 m + (1 - beta1) g in place of m. The powers are those of this step, beta^t.
    """
    var, m, v = _three(out)
    m, v = _moments(m, v, grad, beta1, beta2)
    rate = lr * np.sqrt(1 - beta2_power) / (1 - beta1_power)
    step = beta1 * m + (1 - beta1) * grad if use_nesterov else m
    return Computed((var - rate * step / (np.sqrt(v) + epsilon), m, v))


def adam_w(
    out: Sequence[Array],
    grad: Array,
    beta1_power: float,
    beta2_power: float,
    lr: float,
    weight_decay: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    largest: Array | None = None,
    amsgrad: Any = False,
    maximize: Any = False,
) -> Computed:
    """var = var (1 - lr weight_decay) - lr m / (1 - beta1^t) / (sqrt(s / (1 - beta2^t)) + epsilon), new moments.

    s is v, with ``amsgrad`` the maximum of v and ``largest``, its greatest so far. ``maximize``: -g in place of g.
    The powers are those of the step before: beta^t = beta_power * beta.
    """
    var, m, v = _three(out)
    m, v = _moments(m, v, -grad if maximize else grad, beta1, beta2)
    s = np.maximum(largest, v) if amsgrad and largest is not None else v
    corrected = np.sqrt(s / (1 - beta2_power * beta2)) + epsilon
    return Computed((var * (1 - lr * weight_decay) - lr * m / (1 - beta1_power * beta1) / corrected, m, v))


def adam_w_in_arguments(var: Array, m: Array, v: Array, **others: Any) -> Computed:
    """``adam_w`` whose first three arguments are what is updated."""
    return adam_w([var, m, v], **others)


def adam_w_by_step(
    var: Array,
    m: Array,
    v: Array,
    max_v: Array,
    gradient: Array,
    step: Any,
    lr: float,
    beta1: float,
    beta2: float,
    decay: float,
    eps: float,
    amsgrad: Any = False,
    maximize: Any = False,
) -> Computed:
    """``adam_w`` at step t = ``step`` + 1: the first is 0."""
    powers = {"beta1_power": beta1**step, "beta2_power": beta2**step}
    rates = {"lr": lr, "weight_decay": decay, "beta1": beta1, "beta2": beta2, "epsilon": eps}
    return adam_w([var, m, v], gradient, **powers, **rates, largest=max_v, amsgrad=amsgrad, maximize=maximize)


def adam_weight_decay(
    var: Array,
    m: Array,
    v: Array,
    lr: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    decay: float,
    gradient: Array,
) -> Computed:
    """var = var - lr (m / (sqrt(v) + epsilon) + decay var) with the new moments: no powers of betas."""
    m, v = _moments(m, v, gradient, beta1, beta2)
    return Computed((var - lr * (m / (np.sqrt(v) + epsilon) + decay * var), m, v))


def _three(out: Sequence[Array]) -> tuple[Array, Array, Array]:
    if not isinstance(out, (list, tuple)) or len(out) != 3:
        raise NotReproducible("out is not (var, m, v)")
    return out[0], out[1], out[2]
