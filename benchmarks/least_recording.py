"""What any tool pays that keeps what is asked, as ``step_time.py --adapter`` takes it: the least beside the hooks.

The hooks of `hooks_only`; each tensor that a call takes and gives is read once, its figures are computed in C, and one
line of them is in a file before the call returns. At task tensor the bytes of each different tensor are in a file of
their own by then, written by one call. Names of calls, call sites, nested values and whatever is out of the ordinary
are left out, and a crash may leave half a file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hooks_only import HooksOnly, framework
from isal import isal_zlib

from msprobe_ms.arrays.one_pass import bytes_of
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.output.leaf_texts import LeafTexts


class LeastRecording(HooksOnly):
    """Records the figures of tensors, and with ``tensors`` their bytes, into ``folder``."""

    def __init__(self, framework: Framework, level: str, folder: str, *, tensors: bool) -> None:
        super().__init__(framework, level)
        self._folder, self._tensors = folder, tensors
        self._texts = LeafTexts(framework.dialect.tensor_type, sketch=True)
        #: Of calls that are not over: figures of what they were given.
        self._begun: list[bytes] = []
        #: Figures and CRC-32 of what files hold.
        self._written: set[tuple[bytes, int]] = set()
        self._lines = -1

    def start(self, model: Any) -> None:
        os.makedirs(self._folder)
        self._lines = os.open(f"{self._folder}/lines", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640)
        super().start(model)

    def stop(self) -> None:
        super().stop()
        os.close(self._lines)
        self._begun.clear()
        self._written.clear()

    def module_begins(self, module: Any, given: Any) -> None:
        self._begun.append(self._read(given))

    def begins(self, given: Sequence[Any]) -> None:
        self._begun.append(self._read(given))

    def ended(self, output: Any) -> None:
        self._write(self._begun.pop(), self._read(output if isinstance(output, tuple) else (output,)))

    def gradients_begin(self, gradients: Any) -> None:
        self._begun.append(self._read(gradients))

    def gradients_ended(self, inputs: Any, outputs: Any) -> None:
        self._write(self._begun.pop(), self._read(inputs))

    def parameter_gradient(self, gradient: Any) -> None:
        self._write(self._read((gradient,)))

    def _write(self, *parts: bytes) -> None:
        os.write(self._lines, b" ".join(parts) + b"\n")

    def _read(self, values: Any) -> bytes:
        """The leaves of the tensors among ``values``, whose bytes are in files where they are to be."""
        tensors = [each for each in values if self._framework.is_tensor(each)]
        was_inside, self._inside = self._inside, True  # what reads a tensor is no call of the training's
        try:
            leaves = self._texts.of_all(tensors, self._framework.places()) or [b""] * len(tensors)
            for tensor, leaf in zip(tensors, leaves, strict=True) if self._tensors else ():
                self._keep(tensor, leaf or b"")
        finally:
            self._inside = was_inside
        return b",".join(leaf or b"" for leaf in leaves)

    def _keep(self, tensor: Any, leaf: bytes) -> None:
        elements = self._framework.elements(tensor)
        data = None if elements is None else bytes_of(elements)
        if data is None:
            data = np.ascontiguousarray(self._framework.to_numpy(self._framework.plain(tensor))).data
        known = leaf, isal_zlib.crc32(data)
        if known not in self._written:
            self._written.add(known)
            number = os.open(f"{self._folder}/{len(self._written)}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640)
            os.write(number, data)
            os.close(number)


def make(config_path: str) -> LeastRecording:
    """Record what ``level`` and ``task`` in the file ask for, into its ``dump_path``."""
    asked = json.loads(Path(config_path).read_text())
    return LeastRecording(framework(), asked["level"], asked["dump_path"], tensors=asked["task"] == "tensor")
