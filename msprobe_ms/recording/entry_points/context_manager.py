"""Record one step in a ``with`` block, without a configuration file, and read what was recorded as values."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from msprobe_ms.config.vocabulary import GRADIENT_TASK
from msprobe_ms.dump.model import Dump, Entry, Item, Tensors
from msprobe_ms.dump.names import counted_entries
from msprobe_ms.dump.reading.locate import dump_file
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.page.template import escaped
from msprobe_ms.recording.debugger import BaseDebugger
from msprobe_ms.recording.entry_points.notebook import recording_html
from msprobe_ms.support.errors import MissingTensorError, UsageError

#: Entries a recording's text names; the rest is counted.
_MOST_SHOWN = 8


class RecordedValue:
    """One value of a call: a tensor's statistics, its numbers when asked for; or a plain value."""

    def __init__(self, item: Item, tensors: Tensors) -> None:
        self._item = item
        self._tensors = tensors
        #: ``Cell.fc1.Dense.forward.0.output.0``.
        self.name = item.name
        #: As dump.json has them: ``Float32`` or ``torch.float32``, a tuple of sizes.
        self.dtype, self.shape = item.dtype, item.shape
        self.maximum, self.minimum, self.mean, self.norm = item.maximum, item.minimum, item.mean, item.norm
        #: CRC-32 of the numbers, where ``summary_mode`` is ``md5``.
        self.md5 = item.md5

    @property
    def value(self) -> Any:
        """A plain value (a number, a text, a shape); None for a tensor and where there was nothing."""
        if self._item.kind != "value":
            return None
        return self._item.shape if self._item.maximum is None else self._item.maximum

    def numpy(self) -> np.ndarray:
        """The tensor, read from its file now; bfloat16 and float8 as float32.

        Raises MissingTensorError when none was stored (task ``statistics``), DumpFormatError when its file is damaged.
        """
        if self._item.kind != "tensor":
            raise MissingTensorError(f"{self.name} holds no tensor but {self!r}; .value gives a plain value")
        if self._item.data_name is None:
            how = 'record(…, task="tensor") stores tensors'
            raise MissingTensorError(f"{self.name}: no tensor was stored, only its figures; {how}")
        return self._tensors.load(self._item)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __repr__(self) -> str:
        item = self._item
        if item.kind == "null":
            return "nothing"
        if item.kind == "value":
            return f"{item.type} {self.value}"
        statistics = (("Max", item.maximum), ("Min", item.minimum), ("Mean", item.mean), ("Norm", item.norm))
        shown = " ".join(f"{name} {number:.6g}" for name, number in statistics if isinstance(number, (int, float)))
        return f"{item.dtype} {item.shape} {shown}".rstrip()


class RecordedCall(Mapping[str, RecordedValue]):
    """One entry of a recording: ``input.0``, ``output.0``, ``parameters.weight`` … → its value."""

    def __init__(self, entry: Entry, tensors: Tensors) -> None:
        self.name = entry.name
        #: The enclosing module's entry, and the lines that made the call, innermost first.
        self.parent = entry.parent
        self.stack = entry.stack
        self._values = {item.suffix: RecordedValue(item, tensors) for item in entry.items}

    def __getitem__(self, suffix: str) -> RecordedValue:
        try:
            return self._values[suffix]
        except KeyError:
            raise KeyError(f"{self.name} has {', '.join(self._values) or 'nothing'}, not {suffix!r}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return "\n".join([self.name, *(f"  {suffix}: {value!r}" for suffix, value in self._values.items())])


class Recording(Mapping[str, RecordedCall]):
    """One recorded step: name of an entry → the call. Complete when the ``with`` block has ended."""

    def __init__(self, debugger: BaseDebugger, model: Any) -> None:
        self._debugger = debugger
        self._model = model
        self._running = False
        self._dump: Dump | None = None
        self._path: Path | None = None

    def __enter__(self) -> Recording:
        if self._path is not None:
            raise UsageError("record: a recording holds one step; call record again for another")
        self._debugger.begin_unused_step()
        self._debugger.steps_are_called = True  # the block is one step
        self._path = self._debugger.folder
        try:
            self._debugger.start(self._model)
        except UsageError:
            self._debugger.retire()
            raise
        self._running = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._debugger.stop()
        self._debugger.retire()
        self._running, self._model = False, None

    @property
    def path(self) -> Path:
        """The folder of dump.json, stack.json, construct.json and the tensors."""
        if self._path is None:
            raise UsageError("record: nothing is recorded before the block begins: with record(model) as dump: …")
        return self._path

    def _read(self) -> Dump | None:
        if self._dump is None:
            folder = self.path
            if self._running:
                raise UsageError("record: the step is still being recorded; read it after the with block")
            self._dump = read_dump(folder) if dump_file(folder) else None
        return self._dump

    def _entries(self) -> dict[str, Entry]:
        dump = self._read()
        return {} if dump is None else dump.entries

    def __getitem__(self, name: str) -> RecordedCall:
        entries = self._entries()
        if name not in entries or self._dump is None:
            close = difflib.get_close_matches(name, entries, 3)
            hint = f"; did you mean {' or '.join(close)}?" if close else ""
            raise KeyError(f"{name!r} was not recorded{hint}")
        return RecordedCall(entries[name], self._dump.tensors)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries())

    def __len__(self) -> int:
        return len(self._entries())

    def _repr_html_(self) -> str:
        dump = None if self._path is None or self._running else self._read()
        return f"<pre>{escaped(repr(self))}</pre>" if dump is None else recording_html(dump)

    def __repr__(self) -> str:
        if self._path is None or self._running:
            return f"<recording to {self._path or 'nowhere yet'}>"
        names = list(self)
        lines = [f"{counted_entries(len(names))} in {self.path}", *(f"  {name}" for name in names[:_MOST_SHOWN])]
        if len(names) > _MOST_SHOWN:
            lines.append(f"  … and {len(names) - _MOST_SHOWN} more")
        return "\n".join(lines)


#: Keys of a configuration that choose among steps, or change while a job runs: a recording is one step.
_OF_MANY_STEPS = ("step", "dump_enable")


def open_recording(debugger: type[BaseDebugger], model: Any, settings: Mapping[str, Any]) -> Recording:
    """Return the recording of ``model`` that ``settings``, keys of a configuration, ask for.

    Raises ConfigError or UsageError for what cannot work.
    """
    for key in _OF_MANY_STEPS:
        if key in settings:
            raise UsageError(f"record: {key} is not accepted: a recording holds one step; use a PrecisionDebugger")
    if settings["task"] == GRADIENT_TASK:
        raise UsageError(f"record: task {GRADIENT_TASK} writes no dump; use a PrecisionDebugger and its monitor")
    return Recording(debugger(settings=settings), model)
