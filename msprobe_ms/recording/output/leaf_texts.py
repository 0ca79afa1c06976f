"""Leaves as text at once, from where the elements of a tensor lie: made in C, without an object of Python for each.

Where the extension is not built, `numpy_leaves` makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from msprobe_ms.arrays import one_pass
from msprobe_ms.arrays.one_pass import Elements, Places, is_built, leaf_text, tables
from msprobe_ms.dump.writing.json_text import leaf_frame, number_frame
from msprobe_ms.recording.output.numpy_leaves import NumpyLeaves
from msprobe_ms.support.interruptions import interrupts

#: Frames of leaves that are kept; a step of a network has some dozens.
_MOST_FRAMES = 1000

#: Dtype, shape and whether a gradient is required.
_Key = tuple[str, tuple[int, ...], bool | None]


class _Frames(dict[_Key, tuple[bytes, ...]]):
    """What stands around the figures in the text of a leaf."""

    def __init__(self, tensor_type: str) -> None:
        super().__init__()
        self._tensor_type = tensor_type

    def __missing__(self, key: _Key) -> tuple[bytes, ...]:
        dtype, shape, requires_grad = key
        sizes = tuple(shape)
        frame = leaf_frame(self._tensor_type, dtype, sizes, requires_grad)
        if len(self) < _MOST_FRAMES:
            self[dtype, sizes, requires_grad] = frame
        return frame


class LeafTexts:
    """Makes the texts of leaves of one type of tensors."""

    def __init__(self, tensor_type: str, *, sketch: bool) -> None:
        self._sketch = sketch
        self._by_numpy = None if is_built() else NumpyLeaves(sketch=sketch)
        self._tables = tables() if sketch and self._by_numpy is None else None
        self._frames = _Frames(tensor_type)
        self._numbers = number_frame()

    def of(self, elements: Elements, requires_grad: bool | None) -> bytes | None:
        """The leaf of a tensor, as `Value` has it; None of a large one that numpy reads in parts."""
        frame = self._frames[elements.dtype, elements.shape, requires_grad]
        if self._by_numpy is not None:
            return self._by_numpy.leaf(elements, frame)
        return leaf_text(elements, frame, sketch=self._sketch)

    def of_all(self, values: Sequence[Any], places: Places | None) -> list[bytes | None] | None:
        """The leaves of a list or tuple of tensors and numbers; None for a tensor that is out of the ordinary.

        None where there is anything else among them, and where a framework does not tell where elements lie.
        """
        if places is None:
            return None
        try:
            if self._by_numpy is not None:
                return self._by_numpy.leaves(values, places, self._frames)
            return one_pass.leaves(values, places, self._frames, self._tables, self._numbers, orjson.dumps)
        except Exception as error:  # each by itself, then
            if isinstance(error, (MemoryError, RecursionError)) or interrupts(error):
                raise
            return None
