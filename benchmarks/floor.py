"""What any tool pays that keeps what is asked, as ``step_time.py --adapter`` takes it; no dump comes of it.

The hooks of `hooks_only`, and beside them no more than this: each tensor that a call takes and gives, and each
gradient, is read once by the pass in C, and one line of each call, of its figures, is in an open file before the call
returns.
Task tensor: besides, the elements of each tensor whose figures did not come before in the step are written into a file
of their own, with one open, write and close. A tool has to make sure that tensors with equal figures are equal; nothing
here does.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from hooks_only import HooksOnly, framework_at_hand

from msprobe_ms.arrays.in_memory import bytes_of
from msprobe_ms.arrays.one_pass import Elements, elements_of
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.output.leaf_texts import LeafTexts


class Floor(HooksOnly):
    """Reads what the hooks bring, and writes it into ``folder``."""

    def __init__(self, framework: Framework, level: str, folder: Path, *, files: bool) -> None:
        super().__init__(framework, level)
        self._folder, self._files = folder, files
        self._texts = LeafTexts(framework.dialect.tensor_type, sketch=True)

    def start(self, model: Any) -> None:
        self._folder.mkdir(parents=True)
        self._place = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        self._lines, self._numbers, self._known = self._opened("lines"), count(), set[bytes]()
        super().start(model)

    def stop(self) -> None:
        super().stop()
        os.close(self._lines)
        os.close(self._place)

    def taken(self, values: Sequence[Any]) -> list[bytes]:
        return self._read(values)

    def given(self, taken: list[bytes], values: Sequence[Any]) -> None:
        os.write(self._lines, b" ".join((*taken, *self._read(values), b"\n")))

    def came(self, gradients: Sequence[Any]) -> None:
        os.write(self._lines, b" ".join((*self._read(gradients), b"\n")))

    def _read(self, values: Sequence[Any]) -> list[bytes]:
        """The figures of the tensors among the values."""
        tensors, was_inside = list(self._tensors(values)), self._inside
        self._inside = True
        try:
            if self._files:
                return [self._written(tensor) for tensor in tensors]
            texts = self._texts.of_all(tensors, self._framework.places()) or [None] * len(tensors)
            pairs = zip(texts, tensors, strict=True)
            return [self._texts.of(self._elements(tensor)[0], None) if text is None else text for text, tensor in pairs]
        finally:
            self._inside = was_inside

    def _tensors(self, values: Sequence[Any]) -> Iterator[Any]:
        for value in values:
            if self._framework.is_tensor(value):
                yield value
            elif type(value) in (list, tuple):
                yield from self._tensors(value)

    def _elements(self, tensor: Any) -> tuple[Elements, Any]:
        """Where the elements of a tensor lie, and what holds them."""
        if (elements := self._framework.elements(tensor)) is not None and elements.strides is None:
            return elements, tensor
        array = np.ascontiguousarray(self._framework.to_numpy(self._framework.plain(tensor)))
        elements = elements_of(array)
        assert elements is not None
        return elements, array

    def _written(self, tensor: Any) -> bytes:
        elements, _held = self._elements(tensor)
        text = self._texts.of(elements, None)
        if text not in self._known:
            self._known.add(text)
            file, data = self._opened(str(next(self._numbers))), bytes_of(elements)
            assert data is not None
            os.write(file, data)
            os.close(file)
        return text

    def _opened(self, name: str) -> int:
        return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=self._place)


def make(config_path: str) -> Floor:
    """The floor of the framework that is imported, of the ``level`` and the ``task`` in the file."""
    config = json.loads(Path(config_path).read_text())
    folder, files = Path(config["dump_path"]) / "floor", config["task"] == "tensor"
    return Floor(framework_at_hand(), config["level"], folder, files=files)
