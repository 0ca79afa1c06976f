"""Describe what two items differ by: the reasons of reports."""

from __future__ import annotations

import math
from collections.abc import Iterator

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.metrics import COSINE, Missing
from msprobe_ms.comparison.measuring.tensors import NOTE
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.statistics import checksums_comparable, describe_non_finite, same_value
from msprobe_ms.comparison.terms import Mode
from msprobe_ms.dump.model import Item

_MD5, _TENSOR = Mode.MD5, Mode.TENSOR
#: Why metrics of real data have no number, where the row itself does not say.
WHY_MISSING = {
    Missing.NON_FINITE: "NaN or infinity stand at other places than in the golden.",
    Missing.ZERO_VECTOR: "One side is all zeros, so there is no angle between them.",
    Missing.EMPTY: "Both are empty.",
    Missing.SCALAR: "A scalar has neither direction nor distribution.",
    Missing.SINGLE: "A single element has neither direction nor distribution.",
}


def differences(row: Row, target: Item, golden: Item, mode: Mode) -> Iterator[str]:
    """Yield what makes a row differ, the plainest first; at least one."""
    if target.kind != "tensor" or golden.kind != "tensor":
        yield _values(target, golden)
        return
    if target.shape != golden.shape:
        yield f"The shapes differ: {_shape(target)} and {_shape(golden)}"
    elif (row.measured or {}).get(COSINE) is Missing.SHAPE:
        yield "The tensors in the files differ in shape"
    if parse_dtype(target.dtype).kind != parse_dtype(golden.dtype).kind:
        yield f"The dtypes differ in kind: {target.dtype} and {golden.dtype}"
    mine, theirs = describe_non_finite(target), describe_non_finite(golden)
    if mine and not theirs:
        yield f"It holds {mine}, the golden is finite"
    elif theirs and not mine:
        yield f"It is finite, the golden holds {theirs}"
    elif (row.measured or {}).get(COSINE) is Missing.NON_FINITE:
        yield WHY_MISSING[Missing.NON_FINITE].removesuffix(".")
    elif mine != theirs:
        yield f"It holds {mine}, the golden {theirs}"
    if mode == _MD5 and checksums_comparable(target, golden) and row.deviation == math.inf:
        yield f"The checksums differ: {target.md5} and {golden.md5}"
    if row.deviation == math.inf:
        yield "It differs from a golden of zeros"
    dtypes = "" if parse_dtype(target.dtype) == parse_dtype(golden.dtype) else f" ({target.dtype} and {golden.dtype})"
    yield f"{deviates(row)}{dtypes}"


def deviates(row: Row) -> str:
    return f"It deviates by {row.deviation:.3g}, beyond the tolerance {row.held_to:.3g}"


def remarks(row: Row, target: Item, golden: Item, mode: Mode) -> Iterator[str]:
    """Yield what is worth saying of a row that does not differ, the most important first."""
    note = row.measured.get(NOTE) if row.measured else None
    if note:
        yield str(note)
    if target.kind != "tensor" or golden.kind != "tensor":
        if target.kind == golden.kind == "null":
            yield "There is nothing on both sides."
        elif target.kind != golden.kind or not same_value(target, golden):
            yield f"{_values(target, golden)}: not judged, as the two may call it otherwise."
        return
    mine, theirs = parse_dtype(target.dtype), parse_dtype(golden.dtype)
    if target.shape != golden.shape:
        yield f"The shapes differ: {_shape(target)} and {_shape(golden)}."
    if mine != theirs:
        yield f"The dtypes differ: {target.dtype} and {golden.dtype}."
    if mode == _MD5 and target.md5 != golden.md5:
        yield "The checksums differ, as they will between frameworks; the statistics agree."
    if odd := describe_non_finite(target):
        places = "at the same places as the golden" if mode == _TENSOR and not note else "as the golden"
        yield f"It holds {odd}, {places}."
    if isinstance(target.shape, tuple) and 0 in target.shape:
        yield "Both are empty."
    if None not in (target.requires_grad, golden.requires_grad) and target.requires_grad != golden.requires_grad:
        yield f"requires_grad is {target.requires_grad} here and {golden.requires_grad} in the golden."


def _values(target: Item, golden: Item) -> str:
    return f"It is {_value(target)} here and {_value(golden)} in the golden"


def _value(item: Item) -> str:
    if item.kind == "null":
        return "nothing"
    if item.kind == "tensor":
        return f"a tensor {_shape(item)} of {item.dtype}" if item.shape else f"a tensor of {item.maximum}"
    return str(item.maximum if item.maximum is not None else item.shape)


def _shape(item: Item) -> str:
    return str(list(item.shape)) if isinstance(item.shape, tuple) else str(item.shape)
