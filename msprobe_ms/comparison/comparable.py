"""What of two items can be compared at all, and whether plain values agree."""

from __future__ import annotations

import math

from msprobe_ms.arrays.dtypes import parse_dtype, same_dtype
from msprobe_ms.dump.model import Item


def is_comparable(mine: str | None, theirs: str | None, shape: object, other_shape: object) -> bool:
    """Whether two tensors of these dtypes and shapes can be compared in value, so that they may agree."""
    if shape is None or other_shape is None:  # of a file so damaged that nothing tells
        return True
    return shape == other_shape and parse_dtype(mine).kind == parse_dtype(theirs).kind


def without_ones(shape: object) -> object:
    return tuple(length for length in shape if length != 1) if isinstance(shape, tuple) else shape


def no_gradient(item: Item) -> bool:
    """No gradient reached this place: one framework leaves it out, another hands on zeros."""
    return item.kind == "null" or (item.kind == "tensor" and item.maximum == item.minimum == 0)


def checksums_comparable(target: Item, golden: Item) -> bool:
    """Whether both have a checksum, of bytes of one dtype: equal numbers of two dtypes have other bytes."""
    return target.md5 is not None and golden.md5 is not None and same_dtype(target.dtype, golden.dtype)


def same_value(target: Item, golden: Item) -> bool:
    """Whether two plain values mean the same: numbers by value, dtypes across frameworks, anything else as text."""
    mine, theirs = target.maximum, golden.maximum
    if mine is None or theirs is None:
        return mine is theirs and str(target.shape) == str(golden.shape)
    if isinstance(mine, str) or isinstance(theirs, str):
        return str(mine) == str(theirs) or same_dtype(str(mine), str(theirs))
    if {target.kind, golden.kind} == {"tensor", "value"}:  # a scalar that a compiled graph holds in its own precision
        return math.isclose(
            mine, theirs, rel_tol=parse_dtype((target if target.kind == "tensor" else golden).dtype).epsilon
        )
    return mine == theirs or (mine != mine and theirs != theirs)
