"""The sketches of a dump's items as one column of bytes."""

from __future__ import annotations

from array import array
from binascii import a2b_base64, b2a_base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from msprobe_ms.arrays.sketch_map import LENGTH

#: What the text of a sketch stands for: sixteen float32 or float64.
_SKETCH_BYTES = (64, 128)


class SketchColumn:
    """The sketches of items: their bytes one after another, as most items have one and few are asked for theirs."""

    def __init__(self) -> None:
        self._raw = bytearray()
        self._ends = array("q")

    def __bool__(self) -> bool:
        return bool(self._raw)

    def add(self, number: int, text: Any) -> None:
        """Keep the sketch of an item, which comes after all that are kept; what is none is passed over."""
        try:
            raw = a2b_base64(text)
        except (TypeError, ValueError):
            return
        if len(raw) not in _SKETCH_BYTES:
            return
        ends = self._ends
        if number != len(ends):
            ends.extend([len(self._raw)] * (number - len(ends)))
        self._raw += raw
        ends.append(len(self._raw))

    def text(self, number: int) -> str | None:
        """Return the text of an item's sketch; None where it has none."""
        if number >= len(self._ends):
            return None
        start = self._ends[number - 1] if number else 0
        raw = self._raw[start : self._ends[number]]
        return b2a_base64(raw, newline=False).decode("ascii") if raw else None

    def numbers(self, wanted: Sequence[int] | npt.NDArray[np.int32]) -> np.ndarray:
        """Return the sketches of these items, (n, 16) in float64; NaN in the rows of those without one."""
        found = np.full((len(wanted), LENGTH), np.nan)
        ends, raw = np.frombuffer(self._ends, np.int64), np.frombuffer(self._raw, np.uint8)
        numbers = np.asarray(wanted, np.intp)
        rows = np.flatnonzero(numbers < len(ends))
        last = ends[numbers[rows]]
        sizes = last - np.where(numbers[rows] > 0, ends[numbers[rows] - 1], 0)
        for dtype in ("<f4", "<f8"):
            size = np.dtype(dtype).itemsize * LENGTH
            here = sizes == size
            bytes_of_each = raw[last[here, None] + np.arange(-size, 0)]
            found[rows[here]] = bytes_of_each.view(dtype)
        return found
