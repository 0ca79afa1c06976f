"""Arrays of a framework's dtype: numpy's own, and floats that numpy lacks (bfloat16, float8), held as float32."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from msprobe_ms.arrays.dtypes import float8_values, parse_dtype


class TypedArray(NamedTuple):
    """Values of a tensor and the dtype that they are of.

    ``dtype``   in numpy's spelling, ``float32``, ``bfloat16``, ``int64``, ``bool``
    ``values``  any shape; of the dtype itself, or float32 where numpy has no such dtype
    """

    dtype: str
    values: np.ndarray


def magnitude(tensor: TypedArray) -> float:
    """Return the largest absolute value that is finite; 0 of booleans, and where there is none."""
    values = np.abs(tensor.values) if tensor.values.dtype.kind in "fiuc" else np.zeros(0)
    return float(np.max(values, initial=0.0, where=np.isfinite(values)))


def rounded(values: np.ndarray, dtype: str) -> TypedArray:
    """Round ``values`` (any shape, real) to the nearest numbers of ``dtype``, ties to even; floats become integers by
    cutting, as casts of the frameworks do.

    :raises TypeError: numpy has no such dtype, nor is it bfloat16 or a float8

    >>> float(rounded(np.array(1.003), "bfloat16").values)
    1.0
    """
    name = parse_dtype(dtype).name
    if name == "bfloat16":
        return TypedArray(name, _to_bfloat16(np.asarray(values)))
    if name.startswith(("float8", "hifloat8")):
        return TypedArray(name, _to_nearest(np.asarray(values), float8_values(name)))
    with np.errstate(all="ignore"):  # what does not fit becomes infinite, as in the frameworks
        return TypedArray(name, np.asarray(values).astype(np.dtype(name)))


def _to_bfloat16(values: np.ndarray) -> np.ndarray:
    """Keep eight bits of the mantissa: once, from float64, as rounding to float32 first would round twice."""
    wide = values.astype(np.float64)
    with np.errstate(all="ignore"):
        mantissa, exponent = np.frexp(wide)
        digits = np.minimum(8, exponent + 133)  # subnormal numbers have fewer
        scale = np.ldexp(1.0, digits.astype(np.int64))
        near = np.ldexp(np.rint(mantissa * scale) / scale, exponent)
        near = np.where(np.isfinite(wide), near, wide)
        largest = np.float64(3.3895313892515355e38)
        near = np.where(np.isfinite(wide) & (np.abs(near) > largest), np.copysign(np.inf, near), near)
        return near.astype(np.float32)


def _to_nearest(values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The nearest of a format's 256 numbers; ties to the even code; what is beyond them all to the largest."""
    order = np.argsort(np.where(np.isfinite(codes), codes, np.inf), kind="stable")
    order = order[np.isfinite(codes[order])]
    numbers = codes[order].astype(np.float64)
    numbers, first = np.unique(numbers, return_index=True)
    order = order[first]
    wide = values.astype(np.float64)
    above = np.clip(np.searchsorted(numbers, np.nan_to_num(wide)), 1, len(numbers) - 1)
    low, high = numbers[above - 1], numbers[above]
    to_low, to_high = np.abs(wide - low), np.abs(high - wide)
    even = order[above - 1] % 2 == 0
    near = np.where((to_low < to_high) | ((to_low == to_high) & even), low, high)
    return np.where(np.isnan(wide), np.nan, near).astype(np.float32)
