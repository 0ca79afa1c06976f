"""Linear layers, and gradients of matrix products as operators of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from msprobe_ms.accuracy.references.reference import Array, Computed, Gradient, sum_to


def linear(x: Array, weight: Array, bias: Array | None = None) -> Computed:
    """y = x @ weight^T + bias. x: (…, in); weight: (out, in) or (in,).

    dx = g @ weight; dweight = sum over the leading axes of g^T x; dbias = sum of g over the leading axes.
    """
    rows = weight.reshape(-1, weight.shape[-1])  # a weight of one axis stands for one row, which y has no axis for
    y = x @ weight.T + (0.0 if bias is None else bias)

    def backward(g: Array) -> Mapping[str, Gradient]:
        dx, dweight = linear_gradients(g.reshape(*x.shape[:-1], len(rows)), x, rows)
        return {
            "x": dx,
            "weight": dweight.reshape(weight.shape),
            "bias": None if bias is None else sum_to(g, bias.shape),
        }

    return Computed((y,), backward)


def linear_gradients(g: Array, x: Array, weight: Array) -> tuple[Array, Array]:
    """dx and dweight of ``linear``, over any number of leading axes."""
    return g @ weight, g.reshape(-1, g.shape[-1]).T @ x.reshape(-1, x.shape[-1])


def linear_backward(grad: Array, x: Array, weight: Array) -> Computed:
    """The gradients of x and weight of ``linear``, as an operator."""
    return Computed(linear_gradients(grad, x, weight))


def matmul_backward(grad: Array, first: Array, second: Array, mask: Sequence[bool] = (True, True)) -> Computed:
    """The gradients of first @ second, as an operator: g @ second^T and first^T @ g, summed where a batch axis was
    broadcast; an argument of one axis is a row (first) or a column (second). ``mask`` says which are asked for.
    """
    rows = first[np.newaxis] if first.ndim == 1 else first
    columns = second[:, np.newaxis] if second.ndim == 1 else second
    g = grad if first.ndim > 1 else np.expand_dims(grad, -1 if second.ndim == 1 else -2)
    g = g if second.ndim > 1 else np.expand_dims(g, -1)
    of_first = sum_to(g @ np.swapaxes(columns, -1, -2), rows.shape).reshape(first.shape)
    of_second = sum_to(np.swapaxes(rows, -1, -2) @ g, columns.shape).reshape(second.shape)
    return Computed((of_first if mask[0] else None, of_second if mask[1] else None))
