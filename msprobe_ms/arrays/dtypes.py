"""Dtypes: what their texts mean, whichever framework wrote them, and the values of floats that numpy has no dtype for.

``Float32`` and ``torch.float32`` are one dtype. bfloat16, five float8 formats and HiFloat8 are widened to float32
without loss.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

#: Machine epsilon by float dtype (IEEE 754 binary16/32/64; bfloat16 and the float8 kinds by their mantissa bits).
EPSILON = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float8_e4m3fn": 2.0**-3,
    "float8_e4m3fnuz": 2.0**-3,
    "float8_e5m2": 2.0**-2,
    "float8_e5m2fnuz": 2.0**-2,
    "hifloat8": 2.0**-3,
}
#: The smallest normal number of the floats whose values of a training reach so far down (IEEE 754 binary16, and the
#: specifications named at ``_FLOAT8`` and ``_HIFLOAT8``).
SMALLEST_NORMAL = {
    "float16": 2.0**-14,
    "float8_e4m3fn": 2.0**-6,
    "float8_e4m3fnuz": 2.0**-7,
    "float8_e5m2": 2.0**-14,
    "float8_e5m2fnuz": 2.0**-15,
    "hifloat8": 2.0**-15,
}

#: A complex number is as precise as its parts.
_PARTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
_ALIASES = {"bool_": "bool", "half": "float16", "float": "float32", "double": "float64", "long": "int64"}
_FRAMEWORK = re.compile(r"^(torch|mindspore|mstype|numpy|np)\.")
_CLASS = re.compile(r"<class '(.+)'>")

#: name → (exponent bits, mantissa bits, bias, codes of NaN, has infinities); the OCP 8-bit floating point specification
#: (e4m3fn, e5m2), its microscaling companion (e8m0fnu: an exponent alone) and the "fnuz" variants of Graphcore and AMD.
_FLOAT8 = {
    "float8e4m3fn": (4, 3, 7, (0x7F, 0xFF), False),
    "float8e5m2": (5, 2, 15, (), True),
    "float8e4m3fnuz": (4, 3, 8, (0x80,), False),
    "float8e5m2fnuz": (5, 2, 16, (0x80,), False),
    "float8e8m0fnu": (8, 0, 127, (0xFF,), False),
}
_BFLOAT16 = "bfloat16"
#: Ascend's tapered format (Luo et al., Ascend HiFloat8 Format for Deep Learning, 2024): a prefix says how many bits the
#: exponent has, and the mantissa gets the rest.
_HIFLOAT8 = "hifloat8"
#: Prefix, its bits, exponent bits.
_HIFLOAT8_FIELDS = ((0b11, 2, 4), (0b10, 2, 3), (0b01, 2, 2), (0b001, 3, 1), (0b0001, 4, 0))


@dataclass(frozen=True, slots=True)
class Dtype:
    """A dtype: ``name`` in numpy's spelling; ``kind`` is ``float``, ``complex``, ``int``, ``bool`` or ``other``."""

    name: str
    kind: str

    @property
    def epsilon(self) -> float:
        """Spacing of the numbers at 1.0; 0 for dtypes that hold their values exactly."""
        return EPSILON.get(_PARTS.get(self.name, self.name), 0.0)

    @property
    def smallest_normal(self) -> float:
        """The magnitude below which numbers lie evenly spaced, an epsilon of it apart; 0 where nothing gets there."""
        return SMALLEST_NORMAL.get(_PARTS.get(self.name, self.name), 0.0)


@lru_cache(maxsize=1024)
def parse_dtype(text: str | None) -> Dtype:
    """Parse a dtype text of a dump; a text that is no dtype has kind ``other`` and keeps its spelling.

    >>> parse_dtype("Float32") == parse_dtype("torch.float32")
    True
    >>> parse_dtype("<class 'int'>")
    Dtype(name='int', kind='other')
    """
    if text is None:
        return Dtype("", "other")
    if found := _CLASS.fullmatch(text):
        return Dtype(found[1].rpartition(".")[2], "other")
    name = _FRAMEWORK.sub("", text.strip()).lower()
    name = _ALIASES.get(name, name)
    if name.startswith("float8") and name[6:7] != "_":  # MindSpore writes Float8E4M3FN
        name = f"float8_{name[6:]}"
    if name in EPSILON or name.startswith("float8"):
        return Dtype(name, "float")
    if name in _PARTS:
        return Dtype(name, "complex")
    if name == "bool":
        return Dtype(name, "bool")
    if re.fullmatch(r"u?int\d+", name):
        return Dtype(name, "int")
    return Dtype(name if _FRAMEWORK.match(text) else text, "other")


def same_dtype(one: str | None, other: str | None) -> bool:
    """Whether two dtype texts mean the same, across frameworks."""
    return parse_dtype(one) == parse_dtype(other)


def coarser(one: str | None, other: str | None) -> Dtype:
    """Return the less precise of two dtypes: it sets how far apart the two tensors may be."""
    return max(parse_dtype(one), parse_dtype(other), key=lambda dtype: dtype.epsilon)


def _key(dtype: str) -> str:
    """``BFloat16`` and ``torch.bfloat16``, ``Float8E4M3FN`` and ``torch.float8_e4m3fn`` mean the same."""
    return re.sub(r"^(torch|mindspore)\.|_", "", dtype.lower())


def narrow_width(dtype: str) -> int | None:
    """Return the bytes of one stored element; None for a dtype that is none of these narrow floats."""
    key = _key(dtype)
    return 2 if key == _BFLOAT16 else 1 if key in _FLOAT8 or key == _HIFLOAT8 else None


def widen(codes: np.ndarray, dtype: str) -> np.ndarray:
    """Widen ``codes`` of any shape (uint16 for bfloat16, uint8 for float8) to float32 values of the same shape."""
    key = _key(dtype)
    if key == _BFLOAT16:
        return (codes.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return float8_values(key)[codes]


@lru_cache(maxsize=16)
def float8_values(dtype: str) -> np.ndarray:
    """Return the float32 value of each of the 256 codes of a float8 dtype or HiFloat8."""
    key = _key(dtype)
    values = _hifloat8_values() if key == _HIFLOAT8 else _ieee_like_values(key)
    widened = values.astype(np.float32)
    widened.flags.writeable = False
    return widened


def _hifloat8_values() -> np.ndarray:
    values = np.array([_hifloat8_magnitude(code) for code in range(128)])
    values = np.concatenate([values, -values])
    values[0x80] = np.nan
    return values


def _hifloat8_magnitude(code: int) -> float:
    """The value of seven bits, the sign left out."""
    if code == 0x6F:
        return float("inf")
    for prefix, bits, exponent_bits in _HIFLOAT8_FIELDS:
        if code >> (7 - bits) == prefix:
            mantissa_bits = 7 - bits - exponent_bits
            field = code >> mantissa_bits & ((1 << exponent_bits) - 1)
            mantissa = (code & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
            exponent = 0
            if exponent_bits:  # sign, then the magnitude without its leading 1
                top = 1 << (exponent_bits - 1)
                exponent = -field if field & top else field + top
            return float(np.ldexp(1 + mantissa, exponent))
    return float(np.ldexp(1.0, code - 23)) if code else 0.0  # eight smallest: powers of two, and zero


def _ieee_like_values(key: str) -> np.ndarray:
    exponent_bits, mantissa_bits, bias, not_numbers, has_infinities = _FLOAT8[key]
    codes = np.arange(256)
    top = (1 << exponent_bits) - 1
    exponent = (codes >> mantissa_bits) & top
    mantissa = (codes & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    if exponent_bits == 8:  # neither sign nor mantissa nor subnormals
        values = np.ldexp(1.0, exponent - bias)
    else:
        sign = np.where(codes >> 7, -1.0, 1.0)
        normal = np.ldexp(1 + mantissa, exponent - bias)
        values = sign * np.where(exponent > 0, normal, np.ldexp(mantissa, 1 - bias))
        if has_infinities:
            values = np.where(exponent == top, np.where(mantissa == 0, sign * np.inf, np.nan), values)
    values[list(not_numbers)] = np.nan
    return values
