"""A tensor's statistics computed on its device and left there; those of many are read back at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import mindspore
import numpy as np
from mindspore import Tensor, _c_expression, ops
from mindspore._c_expression import MixedPrecisionType
from mindspore._c_expression.amp import AmpLevel, pop_amp_strategy, push_amp_strategy

from msprobe_ms.arrays import sketch as sketches
from msprobe_ms.arrays.sketch_map import LENGTH
from msprobe_ms.arrays.statistics import is_large

#: Dtypes whose statistics are computed in float32. Others are few (indices, masks) and read as they are.
_DTYPES = frozenset((mindspore.float16, mindspore.bfloat16, mindspore.float32))

# Made once. Operators run without the casts and the gradient graph of functions.
_reshape, _cast, _concat = ops.Reshape(), ops.Cast(), ops.Concat()
_maximum, _minimum, _sum = ops.ReduceMax(keep_dims=True), ops.ReduceMin(keep_dims=True), ops.ReduceSum(keep_dims=True)
_larger, _negative, _quotient, _square = ops.Maximum(), ops.Neg(), ops.RealDiv(), ops.Square()
_slice, _product, _row_sum = ops.Slice(), ops.Mul(), ops.ReduceSum()
_stack = ops.Stack(-1)

#: Numbers of a tensor besides those of its sketch.
_FIVE = 5


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
    """Of one tensor: five numbers in the device's memory and those of its sketch, its shape, the stream, if any."""

    numbers: Tensor
    shape: tuple[int, ...]
    stream: Any


def _stream() -> Any:
    return mindspore.runtime.current_stream() if mindspore.get_context("device_target") != "CPU" else None


def start(tensor: Any, *, sketch: bool = False) -> PendingStatistics | None:
    """Start what `read` makes Max, Min, Mean, Norm and a sketch of; nobody waits for it.

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
        numbers = (maximum, minimum, _sum(flat), _sum(scaled), _sum(_square(scaled)))
        together = _concat((*numbers, *_sketch(scaled, math.prod(shape)))) if sketch else _concat(numbers)
    return PendingStatistics(together, shape, _stream())


@lru_cache(maxsize=1)
def _steps() -> tuple[Tensor, ...]:
    """Vectors of rows, what folds the products of each, and the vectors of the rest."""
    vectors, folding, rest = (table.astype(np.float32) for table in sketches.steps())
    return Tensor(vectors), Tensor(folding), Tensor(rest)


def _sketch(flat: Tensor, size: int) -> Iterator[Tensor]:
    """What `sketches.finished_text` takes, in parts. Products and sums: a product of matrices may round its factors."""
    if size <= LENGTH:
        yield flat
        return
    vectors, folding, rest = _steps()
    whole, row = sketches.groups(size), rest.shape[1]
    if whole:
        rows = _reshape(_part(flat, 0, whole), (1, -1, *vectors.shape[1:]))
        signed = [_row_sum(_product(rows, _part(vectors, place, 1)), -1) for place in range(vectors.shape[0])]
        products = _reshape(_stack(signed), (-1,))
        width = folding.shape[1]
        blocks = products.shape[0] // width
        if blocks:
            yield _sums_with(_reshape(_part(products, 0, blocks * width), (blocks, 1, width)), folding)
        if left := products.shape[0] - blocks * width:
            last = _reshape(_part(products, blocks * width, left), (1, 1, left))
            yield _sums_with(last, _slice(folding, (0, 0), (LENGTH, left)))
    rows_left, left = divmod(size - whole, row)
    if rows_left:
        yield _sums_with(_reshape(_part(flat, whole, rows_left * row), (rows_left, 1, row)), rest)
    if left:
        last = _reshape(_part(flat, size - left, left), (1, 1, left))
        yield _sums_with(last, _slice(rest, (0, 0), (LENGTH, left)))


def _part(tensor: Tensor, start: int, count: int) -> Tensor:
    """Members of a tensor along its first axis."""
    inner = tensor.shape[1:]
    return _slice(tensor, (start, *(0 for _ in inner)), (count, *inner))


def _sums_with(rows: Tensor, vectors: Tensor) -> Tensor:
    """The sums of the products of each row and each vector, one after another."""
    return _reshape(_row_sum(_product(rows, vectors), -1), (-1,))


def read(found: Sequence[PendingStatistics]) -> list[tuple[float, float, float, float, str | None]]:
    """Read Max, Min, Mean, Norm and the text of the sketch of each, by one read-back."""
    here = _stream()
    others = [one.stream for one in found if one.stream is not None and one.stream != here]
    for place, stream in enumerate(others):
        # Not for the whole device: what others send may depend on what this process does next.
        if stream not in others[:place]:
            here.wait_stream(stream)
    with _plainly():
        together = _concat([one.numbers for one in found]).asnumpy()
    told, begin = [], 0
    for one in found:
        end = begin + one.numbers.shape[0]
        row = together[begin : begin + _FIVE].astype(np.float64).tolist()
        told.append((*_told(row, one.shape), _sketch_told(together[begin + _FIVE : end], row, one.shape)))
        begin = end
    return told


def _sketch_told(numbers: np.ndarray, row: Sequence[float], shape: tuple[int, ...]) -> str | None:
    """The text of a sketch whose numbers are of elements divided by the largest; None where there is none."""
    largest = max(row[0], -row[1])
    if not numbers.size or not math.isfinite(largest) or math.isnan(row[2]):
        return None
    scaled = numbers.astype(np.float64) * largest if largest else np.zeros(numbers.shape)
    return sketches.finished_text(scaled, math.prod(shape), np.dtype(np.float32))


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
