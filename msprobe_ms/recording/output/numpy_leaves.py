"""Leaves as text where the extension is not built: numpy reads the elements where they lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msprobe_ms.arrays.in_memory import InMemory, array_of
from msprobe_ms.arrays.one_pass import Elements, Places
from msprobe_ms.arrays.statistics import Known, StatisticsCache, is_large
from msprobe_ms.dump.writing.json_text import LEAF_LEVEL, framed_leaf, value_text
from msprobe_ms.recording.output.plain_values import NUMBERS, plain_leaf


class NumpyLeaves:
    """Makes the texts that `one_pass.leaf_text` and `one_pass.leaf_texts` make, of the tensors of one step."""

    def __init__(self, *, sketch: bool) -> None:
        self._known = StatisticsCache(sketch=sketch)
        self._texts: dict[tuple[int, tuple[bytes, ...]], tuple[Known, bytes]] = {}
        self._memory: InMemory | None = None

    def leaf(self, elements: Elements, frame: tuple[bytes, ...]) -> bytes | None:
        """The leaf of a tensor; None of a large one, which is read in parts."""
        if is_large(elements.shape):
            return None
        array = array_of(elements)
        known = self._known.statistics((elements.address, array.nbytes), array)
        made = self._texts.get((elements.address, frame))
        if made is None or made[0] is not known:
            made = self._texts[elements.address, frame] = known, framed_leaf(frame, known.statistics, known.sketch)
        return made[1]

    def leaves(self, values: Sequence[Any], places: Places, frames: Any) -> list[bytes | None] | None:
        """The leaves of tensors and numbers; None for a tensor that is out of the ordinary.

        None for all where there is anything else among them.
        """
        memory = self._memory
        if memory is None or memory.places is not places:
            memory = self._memory = InMemory(places)
        if not all(type(value) in places.types or type(value) in NUMBERS for value in values):
            return None
        return [
            value_text(plain_leaf(value), LEAF_LEVEL).encode() if type(value) in NUMBERS
            else self._of_tensor(memory, value, frames)
            for value in values
        ]  # fmt: skip

    def _of_tensor(self, memory: InMemory, tensor: Any, frames: Any) -> bytes | None:
        elements = memory.elements(tensor)
        if elements is None:
            return None
        return self.leaf(elements, frames[elements.dtype, elements.shape, memory.requires_grad(tensor)])
