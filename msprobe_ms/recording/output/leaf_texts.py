"""Leaves as text at once, from where the elements of a tensor lie: made in C, without an object of Python for each."""

from __future__ import annotations

from msprobe_ms.arrays.one_pass import Elements, leaf_text
from msprobe_ms.dump.writing.json_text import leaf_frame

#: Frames of leaves that are kept; a step of a network has some dozens.
_MOST_FRAMES = 1000


class LeafTexts:
    """Makes the texts of leaves of one type of tensors."""

    def __init__(self, tensor_type: str, *, sketch: bool) -> None:
        self._tensor_type = tensor_type
        self._sketch = sketch
        #: Of dtype, shape and whether a gradient is required: what stands around the figures in the text of a leaf.
        self._frames: dict[tuple[str, tuple[int, ...], bool | None], tuple[bytes, ...]] = {}

    def of(self, elements: Elements, requires_grad: bool | None) -> bytes:
        """The leaf of a tensor, as `Value` has it."""
        key = elements.dtype, elements.shape, requires_grad
        frame = self._frames.get(key)
        if frame is None:
            frame = leaf_frame(self._tensor_type, *key)
            if len(self._frames) < _MOST_FRAMES:
                self._frames[key] = frame
        return leaf_text(elements, frame, sketch=self._sketch)
