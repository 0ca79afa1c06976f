"""MindSpore's tensors and numpy's arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore
import numpy as np
from mindspore import Tensor

from msprobe_ms.large import parts
from msprobe_ms.store import narrow_floats


def to_numpy(tensor: Any) -> np.ndarray:
    """The tensor's values; bfloat16 and float8 as float32. May alias the tensor's memory."""
    return _readable(tensor.asnumpy(), tensor.dtype)


def in_parts(tensor: Any) -> Iterator[np.ndarray]:
    """The same in parts; of a contiguous tensor on the host without any operator."""
    if tensor.is_contiguous():
        array = tensor.asnumpy()
        for index in parts(array.shape):
            yield _readable(array[index], tensor.dtype)
    else:
        for index in parts(tensor.shape):
            yield to_numpy(tensor[index])


def _readable(array: np.ndarray, dtype: Any) -> np.ndarray:
    if array.dtype.kind != "V":
        return array
    if dtype == mindspore.bfloat16:
        return widened(array)
    known = array.dtype.itemsize == narrow_floats.bytes_of(str(dtype)) == 1
    return narrow_floats.widen(array.view(np.uint8), str(dtype)) if known else array


def widened(array: np.ndarray) -> np.ndarray:
    """An array of MindSpore's own numpy dtype for bfloat16, the upper half of a float32, as float32."""
    return (array.reshape(-1).view("<u2").astype("<u4") << 16).view("<f4").reshape(array.shape)


def difference(total: Any, part: Any) -> Any:
    """``total - part`` without any kernel, not all of which exist for all dtypes; None where it is but rounding."""
    whole, inner = to_numpy(total), to_numpy(part)
    with np.errstate(all="ignore"):
        # What overflowed in the part and so in the sum is the part's; inf - inf would be a NaN of our own.
        rest = np.where((whole == inner) | (np.isnan(whole) & np.isnan(inner)), whole.dtype.type(0), whole - inner)
    finite = np.abs(whole[np.isfinite(whole)])
    epsilon = 2.0**-7 if total.dtype == mindspore.bfloat16 else float(np.finfo(whole.dtype).eps)
    if not rest.size or np.abs(rest).max() <= 4 * epsilon * finite.max(initial=0):
        return None
    return Tensor(rest, total.dtype)
