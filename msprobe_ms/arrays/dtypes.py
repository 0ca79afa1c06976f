"""What a dtype text means, whichever framework wrote it: ``Float32`` and ``torch.float32`` are one dtype."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

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

#: A complex number is as precise as its parts.
_PARTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
_ALIASES = {"bool_": "bool", "half": "float16", "float": "float32", "double": "float64", "long": "int64"}
_FRAMEWORK = re.compile(r"^(torch|mindspore|mstype|numpy|np)\.")
_CLASS = re.compile(r"<class '(.+)'>")


@dataclass(frozen=True, slots=True)
class Dtype:
    """``name`` in numpy's spelling; ``kind`` is ``float``, ``complex``, ``int``, ``bool`` or ``other``."""

    name: str
    kind: str

    @property
    def epsilon(self) -> float:
        """Spacing of the numbers at 1.0; 0 for dtypes that hold their values exactly."""
        return EPSILON.get(_PARTS.get(self.name, self.name), 0.0)


@lru_cache(maxsize=1024)
def parse_dtype(text: str | None) -> Dtype:
    """The meaning of a dtype text of a dump; a text that is no dtype has kind ``other`` and keeps its spelling.

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
    """The less precise of two dtypes: it sets how far apart the two tensors may be."""
    return max(parse_dtype(one), parse_dtype(other), key=lambda dtype: dtype.epsilon)
