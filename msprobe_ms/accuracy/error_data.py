"""The tensors of a call that does not pass, with a script that makes it again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from msprobe_ms.accuracy.calls import ApiCall, mapped
from msprobe_ms.accuracy.scripts import ScriptedCall, TensorFile, write_script
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.dump.names import data_name
from msprobe_ms.frameworks.api_calls import Arguments, Value
from msprobe_ms.support.errors import MsprobeError
from msprobe_ms.support.files import DEFAULT

#: One of each: results and gradients, of the reference and of the device.
_SIDES = ("bench", "device")


def error_folder(folder: Path, timestamp: str) -> Path:
    """Return where the tensors of wrong calls go, beside the tables of a check."""
    return folder / f"error_data_{timestamp}"


def script_name(call: str) -> str:
    """Return the name of the script of a call."""
    return data_name(call, "reproduce", (), ".py")


class ErrorData:
    """Writes the files of one call into a folder of all calls.

    Names are msprobe's: ``Mint.sub.0.forward.input.0.npy``, ``Mint.sub.0.forward.output.0.bench.npy``.
    """

    def __init__(self, folder: Path, call: ApiCall, framework: str) -> None:
        self._folder, self._call, self._framework = folder, call, framework
        #: What will be written, once it is known whether there is a script.
        self._arrays: dict[str, np.ndarray] = {}

    def save(
        self,
        arguments: Arguments,
        incoming: Sequence[TypedArray | None],
        results: Sequence[Sequence[Value] | None],
        gradients: Sequence[Sequence[Value] | None],
        *,
        script_needed: bool = False,
    ) -> Path | None:
        """Write tensors and script; ``results`` and ``gradients``: of the reference, then of the device.

        ``script_needed``: write nothing where there is no script. Returns the script, or None where the call cannot be
        written as one. Raises OSError.
        """
        call = self._call
        scripted = ScriptedCall(
            call.name,
            self._framework,
            call.prefix,
            call.api,
            Arguments(
                tuple(self._tree(value, "forward", "input", (str(n),)) for n, value in enumerate(arguments.positional)),
                {key: self._tree(value, "forward", "kwargs", (key,)) for key, value in arguments.keywords.items()},
            ),
            self._both("forward", results),
            [self._tree(each, "backward", "input", (str(n),)) for n, each in enumerate(incoming)],
            self._both("backward", gradients),
        )
        file = self._folder / script_name(call.name)
        try:
            text = write_script(scripted, file.name)
        except MsprobeError:
            if not script_needed:
                self._write_arrays()
            return None
        self._write_arrays()
        file.write_text(text, encoding="utf-8")
        return file

    def _write_arrays(self) -> None:
        DEFAULT.make_folder(self._folder)
        for name, array in self._arrays.items():
            np.save(self._folder / name, array, allow_pickle=False)

    def _tree(self, value: Value, direction: str, category: str, path: tuple[str, ...]) -> Any:
        """A value with files in place of its tensors, which are kept to be written."""
        number = iter(range(10**9))

        def saved(leaf: Any) -> Any:
            if not isinstance(leaf, TypedArray):
                return leaf
            count = next(number)
            place = path if count == 0 else (*path, str(count))
            name = data_name(f"{self._call.name}.{direction}", category, place, ".npy")
            self._arrays[name] = leaf.values
            return TensorFile(name, leaf.dtype)

        return mapped(value, saved)

    def _both(self, direction: str, sides: Sequence[Sequence[Value] | None]) -> list[str | None]:
        """Keep the results of both sides to be written; returns the reference's files."""
        names: list[str | None] = []
        for side, values in zip(_SIDES, sides, strict=True):
            for number, value in enumerate(values or ()):
                file = self._tree(value, direction, "output", (str(number), side))
                if side == "bench":
                    names.append(file.name if isinstance(file, TensorFile) else None)
        return names
