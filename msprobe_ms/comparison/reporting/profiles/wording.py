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
from msprobe_ms.support.translation import tr

_MD5, _TENSOR = Mode.MD5, Mode.TENSOR
#: How far apart two tensors are.
DEVIATES = tr("It deviates by {deviation:.3g} of its size, beyond the tolerance {held_to:.3g}")
#: Why metrics of real data have no number, where the row itself does not say.
WHY_MISSING = {
    Missing.NON_FINITE: tr("NaN or infinity stand at other places than in the golden."),
    Missing.ZERO_VECTOR: tr("One side is all zeros, so there is no angle between them."),
    Missing.EMPTY: tr("Both are empty."),
    Missing.SCALAR: tr("A scalar has neither direction nor distribution."),
    Missing.SINGLE: tr("A single element has neither direction nor distribution."),
}


def differences(row: Row, target: Item, golden: Item, mode: Mode) -> Iterator[str]:
    """Yield what makes a row differ, the plainest first; at least one."""
    if target.kind != "tensor" or golden.kind != "tensor":
        yield _values(target, golden)
        return
    if target.shape != golden.shape:
        yield tr("The shapes differ: {target} and {golden}", target=_shape(target), golden=_shape(golden))
    elif (row.measured or {}).get(COSINE) is Missing.SHAPE:
        yield tr("The tensors in the files differ in shape")
    if parse_dtype(target.dtype).kind != parse_dtype(golden.dtype).kind:
        yield tr("The dtypes differ in kind: {dtype} and {other_dtype}", dtype=target.dtype, other_dtype=golden.dtype)
    mine, theirs = describe_non_finite(target), describe_non_finite(golden)
    if mine and not theirs:
        yield tr("It holds {mine}, the golden is finite", mine=mine)
    elif theirs and not mine:
        yield tr("It is finite, the golden holds {theirs}", theirs=theirs)
    elif (row.measured or {}).get(COSINE) is Missing.NON_FINITE:
        yield tr("NaN or infinity stand at other places than in the golden")
    elif mine != theirs:
        yield tr("It holds {mine}, the golden {theirs}", mine=mine, theirs=theirs)
    if mode == _MD5 and checksums_comparable(target, golden) and row.deviation == math.inf:
        yield tr("The checksums differ: {md5} and {other_md5}", md5=target.md5, other_md5=golden.md5)
    if row.deviation == math.inf:
        yield tr("It differs from a golden of zeros")
    dtypes = (
        ""
        if parse_dtype(target.dtype) == parse_dtype(golden.dtype)
        else tr(" ({dtype} and {other_dtype})", dtype=target.dtype, other_dtype=golden.dtype)
    )
    yield deviates(row) + dtypes


def deviates(row: Row) -> str:
    return tr(str(DEVIATES), deviation=row.deviation, held_to=row.held_to)


def remarks(row: Row, target: Item, golden: Item, mode: Mode) -> Iterator[str]:
    """Yield what is worth saying of a row that does not differ, the most important first."""
    note = row.measured.get(NOTE) if row.measured else None
    if note:
        yield note if isinstance(note, str) else str(note)
    if target.kind != "tensor" or golden.kind != "tensor":
        if target.kind == golden.kind == "null":
            yield tr("There is nothing on both sides.")
        elif target.kind != golden.kind or not same_value(target, golden):
            yield tr("{values}: the results of the call tell whether it matters.", values=_values(target, golden))
        return
    mine, theirs = parse_dtype(target.dtype), parse_dtype(golden.dtype)
    if target.shape != golden.shape:
        yield tr("The shapes differ: {target} and {golden}.", target=_shape(target), golden=_shape(golden))
    if mine != theirs:
        yield tr("The dtypes differ: {dtype} and {other_dtype}.", dtype=target.dtype, other_dtype=golden.dtype)
    if mode == _MD5 and target.md5 != golden.md5:
        yield tr("The checksums differ, as they will between frameworks; the statistics agree.")
    if odd := describe_non_finite(target):
        places = tr("at the same places as the golden") if mode == _TENSOR and not note else tr("as the golden")
        yield tr("It holds {odd}, {places}.", odd=odd, places=places)
    if isinstance(target.shape, tuple) and 0 in target.shape:
        yield tr("Both are empty.")
    if None not in (target.requires_grad, golden.requires_grad) and target.requires_grad != golden.requires_grad:
        yield tr(
            "requires_grad is {requires_grad} here and {other_requires_grad} in the golden.",
            requires_grad=target.requires_grad,
            other_requires_grad=golden.requires_grad,
        )


def _values(target: Item, golden: Item) -> str:
    return tr("It is {target} here and {golden} in the golden", target=_value(target), golden=_value(golden))


def _value(item: Item) -> str:
    if item.kind == "null":
        return tr("nothing")
    if item.kind == "tensor":
        return (
            tr("a tensor {item} of {dtype}", item=_shape(item), dtype=item.dtype)
            if item.shape
            else tr("a tensor of {maximum}", maximum=item.maximum)
        )
    return str(item.maximum if item.maximum is not None else item.shape)


def _shape(item: Item) -> str:
    return str(list(item.shape)) if isinstance(item.shape, tuple) else str(item.shape)
