"""MindSpore's tensors and numpy's arrays."""

from __future__ import annotations

from typing import Any

import mindspore
import numpy as np
from mindspore import Tensor

from msprobe_ms.store import narrow_floats


# Taken before anything is wrapped.
_permute = Tensor.permute
_as_numpy = Tensor.asnumpy


def _array(tensor: Any) -> np.ndarray:
    """The values as MindSpore hands them out. A view of permuted axes aliases its tensor, too.

    MindSpore copies what is not contiguous with a kernel, element by element, which takes longer than most operators.
    """
    if not tensor.is_contiguous():
        strides = tensor.stride()
        order = sorted(range(len(strides)), key=strides.__getitem__, reverse=True)
        dense = _permute(tensor, tuple(order))
        if dense.is_contiguous():
            return _as_numpy(dense).transpose(np.argsort(order))
    return _as_numpy(tensor)


def to_numpy(tensor: Any) -> np.ndarray:
    """The tensor's values; bfloat16 and float8 as float32. May alias the tensor's memory."""
    array = _array(tensor)
    if array.dtype.kind != "V":
        return array
    if tensor.dtype == mindspore.bfloat16:
        return widened(array)
    known = array.dtype.itemsize == narrow_floats.bytes_of(str(tensor.dtype)) == 1
    return narrow_floats.widen(array.view(np.uint8), str(tensor.dtype)) if known else array


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
