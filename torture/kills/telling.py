"""What a training tells of itself, and how it ends itself: nothing here knows what records it."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import msprobe_ms
from torture.kills.plans import ON_A_LINE, Plan

_TOOL = str(Path(msprobe_ms.__file__).parent)
_FILE_EVENTS = {"open", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate"}


class Planned(Exception):
    """The training's own mistake."""


class Telling:
    """Writes a line for each thing that is over, at once; after the line that the plan names the training ends."""

    def __init__(self, plan: Plan, file: Path) -> None:
        self._file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        ends: dict[str, Callable[[], None]] = {"exception": _raise, "exit": _exit, "memory": self._use_up}
        ends |= dict.fromkeys(ON_A_LINE, LinesOfTheTool(plan).count)
        self._ends = ends.get(plan.way)
        self._at = plan.at
        self._lines = -1
        self._hoard: list[bytearray] = []
        self._calls: Counter[str] = Counter()
        self.step = 0

    def begin(self) -> None:
        """What was before does not count."""
        self._lines = 0
        self.tell("begun")

    def tell(self, kind: str, name: str = "", **more: Any) -> None:
        """``kind`` of thing ``name`` is over."""
        if self._lines < 0:
            return
        line = {"step": self.step, "kind": kind, "name": name, "time": time.monotonic(), **more}
        os.write(self._file, json.dumps(line).encode() + b"\n")
        self._lines += 1
        if self._ends is not None and self._lines >= self._at:
            self._ends()

    def step_begins(self, number: int) -> None:
        self.step = number
        self._calls.clear()

    def call(self, entry: str, value: np.ndarray | None = None) -> None:
        """The next call that makes ``entry``, with ``{}`` where its number stands, has returned ``value``."""
        self.tell("call", entry.format(self.calls(entry)), **({} if value is None else seen(value)))
        self._calls[entry] += 1

    def calls(self, entry: str) -> int:
        """How many calls there were in this step."""
        return self._calls[entry]

    def gradient(self, inside: Sequence[str], entries: Sequence[str], value: np.ndarray) -> None:
        """``value`` has left the calls whose backward makes ``entries``, and what is ``inside`` them is over, too."""
        for entry in inside:
            self.tell("gradient", entry)
        for entry in entries:
            self.tell("gradient", entry, **seen(value))

    def _use_up(self) -> None:
        """An address space that ends here; the script's data goes on growing, as a leak does."""
        if not self._hoard:
            size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (size + (self._at % 5 << 20), resource.RLIM_INFINITY))
        self._hoard.append(bytearray(256 << 10))


def seen(value: np.ndarray) -> dict[str, Any]:
    """What tells one tensor from another, in a file, by its checksum and by its figures."""
    finite = bool(np.isfinite(value).all())
    largest = float(value.max()) if finite else None
    return {"crc": f"{zlib.crc32(value.tobytes()):08x}", "finite": finite, "max": largest}


def _raise() -> None:
    raise Planned("the training's own")


def _exit() -> None:
    sys.exit(7)


class LinesOfTheTool:
    """Sends this process the signal of the plan on a line of the tool, so many of them after `count` was called."""

    def __init__(self, plan: Plan) -> None:
        self._left = plan.lines
        self._signal = signal.SIGINT if plan.way == "interrupt" else signal.SIGTERM

    def count(self) -> None:
        if self._left > 0:
            sys.settrace(self._enter)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(_TOOL) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self._left -= 1
            if self._left == 0:
                sys.settrace(None)
                signal.raise_signal(self._signal)
        return self._line


class FileOperations:
    """Counts what is done to files below a folder; the process is killed before the operation ``at``."""

    def __init__(self, folder: Path, at: int) -> None:
        self.count = 0
        self._start = os.fspath(folder)
        self._at = at
        sys.addaudithook(self._heard)

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _FILE_EVENTS and str(arguments[0]).startswith(self._start):
            self.count += 1
            if self.count == self._at:
                os.kill(os.getpid(), signal.SIGKILL)


def end_with_parent() -> None:
    """Whoever started this process is not survived by it."""
    set_death_signal: Callable[[int, int], int] = ctypes.CDLL(None).prctl
    set_death_signal(1, signal.SIGKILL)
