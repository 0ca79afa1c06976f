"""A tensor's statistics computed on its device and left there; those of many are read back at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import mindspore
import numpy as np
from mindspore import Tensor, _c_expression, ops
from mindspore._c_expression import MixedPrecisionType
from mindspore._c_expression.amp import AmpLevel, pop_amp_strategy, push_amp_strategy

from msprobe_ms.arrays.statistics import is_large

#: Dtypes whose statistics are computed in float32. Others are few (indices, masks) and read as they are.
_DTYPES = frozenset((mindspore.float16, mindspore.bfloat16, mindspore.float32))

# Made once. Operators run without the casts and the gradient graph of functions.
_reshape, _cast, _concat = ops.Reshape(), ops.Cast(), ops.Concat()
_maximum, _minimum, _sum = ops.ReduceMax(keep_dims=True), ops.ReduceMin(keep_dims=True), ops.ReduceSum(keep_dims=True)
_larger, _negative, _quotient, _square = ops.Maximum(), ops.Neg(), ops.RealDiv(), ops.Square()


def is_there() -> bool:
    """Whether tensors are on a device of their own."""
    return bool(mindspore.get_context("device_target") != "CPU")


@contextmanager
def _plainly() -> Iterator[None]:
    """Operators run as they are: in no gradient graph, and without the casts of the mixed precision of a cell."""
    executor = _c_expression.PyNativeExecutor_.get_instance()
    executor.set_mixed_precision_type(MixedPrecisionType.NOTSET, True)
    try:
        push_amp_strategy(AmpLevel.AmpO0, mindspore.float16, [], [])
        try:
            with mindspore._no_grad():
                yield
        finally:
            pop_amp_strategy()
    finally:
        executor.set_mixed_precision_type(MixedPrecisionType.NOTSET, False)


class PendingStatistics(NamedTuple):
    """Of one tensor: five numbers in the device's memory, its shape, and the stream that computes them, if any."""

    numbers: Tensor
    shape: tuple[int, ...]
    stream: Any


def _stream() -> Any:
    return mindspore.runtime.current_stream() if mindspore.get_context("device_target") != "CPU" else None


def start(tensor: Any) -> PendingStatistics | None:
    """Start what `read` makes Max, Min, Mean and Norm of; nobody waits for it.

    None for a tensor that is better read: of another dtype, empty, or so large that copies of it would take too much.
    """
    shape = tuple(tensor.shape)
    if tensor.dtype not in _DTYPES or 0 in shape or is_large(shape):
        return None
    with _plainly():
        flat = _cast(_reshape(tensor, (-1,)), mindspore.float32)
        maximum, minimum = _maximum(flat), _minimum(flat)
        # Of the largest magnitude one, sums neither overflow nor vanish in float32.
        scaled = _quotient(flat, _larger(maximum, _negative(minimum)))
        numbers = _concat((maximum, minimum, _sum(flat), _sum(scaled), _sum(_square(scaled))))
    return PendingStatistics(numbers, shape, _stream())


def read(found: Sequence[PendingStatistics]) -> list[tuple[float, float, float, float]]:
    """Read Max, Min, Mean and Norm of each, by one read-back."""
    here = _stream()
    others = [one.stream for one in found if one.stream is not None and one.stream != here]
    for place, stream in enumerate(others):
        # Not for the whole device: what others send may depend on what this process does next.
        if stream not in others[:place]:
            here.wait_stream(stream)
    with _plainly():
        together = _concat([one.numbers for one in found]).asnumpy()
    rows = together.reshape(-1, 5).astype(np.float64).tolist()
    return [_told(row, one.shape) for row, one in zip(rows, found, strict=True)]


def _told(row: Sequence[float], shape: tuple[int, ...]) -> tuple[float, float, float, float]:
    maximum, minimum, total, scaled, squares = row
    if not shape:
        return total, total, total, total
    count = math.prod(shape)
    largest = max(maximum, -minimum)
    finite = math.isfinite(maximum) and math.isfinite(minimum)
    if finite and math.isfinite(total) and not math.isfinite(scaled):
        # All zeros; or too small to divide by, where a device takes such numbers for zeros.
        return maximum, minimum, total / count, max(largest, 0.0)
    if finite and math.isfinite(scaled):
        return maximum, minimum, largest * scaled / count, largest * math.sqrt(squares)
    if math.isnan(total) and not (maximum == math.inf and minimum == -math.inf):
        return math.nan, math.nan, math.nan, math.nan  # a device's Max and Min may pass over it
    return maximum, minimum, total / count, math.inf
