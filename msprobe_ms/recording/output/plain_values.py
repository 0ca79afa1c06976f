"""Leaves of values that are neither tensors nor containers (docs/format.md, "Values that are no tensors")."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from msprobe_ms.dump.writing.json_text import Value
from msprobe_ms.recording.containers import NUMPY_NUMBERS

#: Types of most values beside tensors.
NUMBERS = frozenset((type(None), bool, int, float))

#: Characters of a text that are written.
LONGEST_TEXT = 1000

#: Bits of an integer that is written; Python turns none of more than 4300 digits into text.
_LONGEST_INTEGER = 14_000


def is_long_text(value: Any) -> bool:
    """Whether a value is a text of which only the beginning is written."""
    return issubclass(type(value), str) and str.__len__(value) > LONGEST_TEXT


def plain_leaf(value: Any) -> Value:
    """Make the leaf of a value; null of most types. What a subclass makes of its number or text is not asked."""
    kind = type(value)
    if value is None or issubclass(kind, enum.Enum):
        return None
    if kind is bool:
        return {"type": "bool", "value": value}
    if issubclass(kind, int):
        number = int.__index__(value)
        return None if number.bit_length() > _LONGEST_INTEGER else {"type": "int", "value": number}
    if issubclass(kind, float):
        return {"type": "float", "value": float.__float__(value)}
    if issubclass(kind, str):
        text, length = str.__getitem__(value, slice(LONGEST_TEXT)), str.__len__(value)
        return {"type": "str", "value": text if length <= LONGEST_TEXT else f"{text}… ({length} characters)"}
    if kind is slice:
        ends: Sequence[Any] = (value.start, value.stop, value.step)
        shown = [end if type(end) is int and end.bit_length() <= _LONGEST_INTEGER else None for end in ends]
        return {"type": "slice", "value": shown}
    if value is Ellipsis:
        return {"type": "ellipsis", "value": "..."}
    if kind in NUMPY_NUMBERS and value.dtype.kind in "fiub":
        plain = value.item()
        if value.dtype.kind == "f":
            plain = float(plain)  # a longdouble gives itself
        return {"type": kind.__name__, "value": plain}
    return None
