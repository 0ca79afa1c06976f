"""Operators that move or cast elements, and compute nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from msprobe_ms.accuracy.references.reference import Array, Computed, NotJudged, NotReproducible
from msprobe_ms.arrays.typed import rounded
from msprobe_ms.frameworks.api_calls import DtypeArgument
from msprobe_ms.support.translation import tr


def confusion_transpose(x: Array, perm: Sequence[int], shape: Sequence[int], transpose_first: bool) -> Computed:
    """``transpose_first``: reshape(permute(x, perm), shape), else permute(reshape(x, shape), perm).

    The gradient goes back through the inverses in the other order; that of a permutation p is q[p[i]] = i.
    """
    perm, shape = tuple(perm), tuple(shape)
    inverse = np.argsort(perm)
    if transpose_first:
        moved = x.transpose(perm)
        return Computed((moved.reshape(shape),), lambda g: {"x": g.reshape(moved.shape).transpose(inverse)})
    return Computed((x.reshape(shape).transpose(perm),), lambda g: {"x": g.transpose(inverse).reshape(x.shape)})


def dtype_cast(x: Array, dtype: DtypeArgument) -> Computed:
    """y = x in ``dtype``, to the nearest, ties to even; dx = g."""
    if not isinstance(dtype, DtypeArgument):
        raise NotReproducible(tr("{dtype} is no dtype", dtype=repr(dtype)))
    return Computed((rounded(x, dtype.name),), lambda g: {"x": g})


def sort(x: Array, dim: int = -1, descending: bool = False, stable: bool = True, with_indices: bool = True) -> Computed:
    """Sorted along ``dim``, NaN as the greatest, equal elements in their order; dx puts g back where it came from.

    Outputs the values and where they were. The second is not judged where the operator promises no order of
    equal elements and there are some.
    """
    # From the end and turned round: so equal elements keep their order when the greatest comes first.
    order = (
        x.shape[dim] - 1 - np.flip(np.argsort(np.flip(x, dim), axis=dim, kind="stable"), dim)
        if descending
        else np.argsort(x, axis=dim, kind="stable")
    )
    values = np.take_along_axis(x, order, dim)
    tied = not stable and _has_equal_neighbours(values, dim)

    def backward(g: Array, _: Array | None = None) -> dict[str, Array]:
        gradient = np.zeros_like(g)
        np.put_along_axis(gradient, order, g, dim)
        return {"x": gradient}

    if not with_indices:
        return Computed((values,), backward)
    return Computed((values, NotJudged(tr("equal elements in any order")) if tied else order), backward)


def _has_equal_neighbours(values: Array, dim: int) -> bool:
    along = np.moveaxis(values, dim, -1)
    low, high = along[..., :-1], along[..., 1:]
    return bool(np.any((low == high) | ((low != low) & (high != high))))
