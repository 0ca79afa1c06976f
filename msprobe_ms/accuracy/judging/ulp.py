"""Units in the last place (ULP): how far apart two neighbouring numbers of a float dtype are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from msprobe_ms.arrays.dtypes import parse_dtype

#: Of float64: bits behind the point, and what its exponents are stored with.
_BITS, _BIAS = 52, 1023


class FloatFormat(NamedTuple):
    """A binary float: bits behind the point of its mantissa, exponent of its smallest normal number, largest number."""

    mantissa: int
    smallest_exponent: int
    largest: float

    @property
    def smallest_normal(self) -> float:
        return float(np.ldexp(1.0, self.smallest_exponent))


#: HiFloat8 has fewer bits away from 1: it is taken at one bit, which most of its exponents have.
_FORMATS = {
    "float64": FloatFormat(52, -1022, float(np.finfo(np.float64).max)),
    "float32": FloatFormat(23, -126, float(np.finfo(np.float32).max)),
    "float16": FloatFormat(10, -14, 65504.0),
    "bfloat16": FloatFormat(7, -126, 3.3895313892515355e38),
    "float8_e4m3fn": FloatFormat(3, -6, 448.0),
    "float8_e4m3fnuz": FloatFormat(3, -7, 240.0),
    "float8_e5m2": FloatFormat(2, -14, 57344.0),
    "float8_e5m2fnuz": FloatFormat(2, -15, 57344.0),
    "float8_e8m0fnu": FloatFormat(0, -127, 2.0**127),
    "hifloat8": FloatFormat(1, -15, 32768.0),
}
_PARTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}


def real_dtype(dtype: str) -> str:
    """Return the dtype of the parts of complex numbers; every other dtype is its own. In numpy's spelling."""
    name = parse_dtype(dtype).name
    return _PARTS.get(name, name)


def float_format(dtype: str) -> FloatFormat | None:
    """Return the format of a float dtype, of a complex one that of its parts; None for all others."""
    return _FORMATS.get(real_dtype(dtype))


def spacing(values: np.ndarray, of: FloatFormat) -> np.ndarray:
    """Return the distance of neighbouring numbers of a format at ``values`` (any shape, finite), as float64.

    >>> float(spacing(np.array(1.0), FloatFormat(10, -14, 65504.0)))
    0.0009765625
    """
    magnitudes = np.abs(np.asarray(values, np.float64))
    if of.mantissa == _BITS:
        return np.spacing(magnitudes)
    exponents = magnitudes.view(np.int64) >> _BITS  # of all numbers that narrower formats hold, none is subnormal here
    return ((np.maximum(exponents, of.smallest_exponent + _BIAS) - of.mantissa) << _BITS).view(np.float64)
