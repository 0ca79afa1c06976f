"""Where a call of the package can be interrupted, and an interrupt at one of these places.

A place is the beginning of a line, or, finer, of an instruction after a call: there Python itself raises what a signal
brought.
"""

from __future__ import annotations

import dis
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from linecache import getline
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from msprobe_ms.support.files import PACKAGE_FOLDER

#: Those that must arrive at the training, and those that must not.
PASSED_ON: tuple[type[BaseException], ...] = (KeyboardInterrupt, SystemExit)
KEPT: tuple[type[BaseException], ...] = (MemoryError, RecursionError)
ERRORS = {error.__name__: error for error in (*PASSED_ON, *KEPT)}

#: What instructions that may fail begin with: they call something, or make it.
_MAY_FAIL = ("BINARY", "BUILD", "CALL", "DICT", "FORMAT", "GET_ITER", "IMPORT", "LIST", "MAKE", "MAP", "PRECALL", "SET")

#: Lines that call what the training has called: what comes there is the training's own.
_USERS_CALL = re.compile(r"\b(function|original|call|launch)\((executor|operator|cell|\*args)|recorder\.run\(")

#: Where the calls of `start`, `stop` and `step` themselves are made, which fail as any call of the training's would.
_CALLER = str(Path(__file__).with_name("trials.py"))


@dataclass(frozen=True)
class Place:
    """The ``occurrence``-th time that ``code`` comes to a line (or instruction), counted from 0."""

    code: CodeType
    position: int
    occurrence: int

    def __str__(self) -> str:
        line = self.position if self.position > 0 else _line_of(self.code, -self.position)
        file = self.code.co_filename.removeprefix(PACKAGE_FOLDER)
        after = "" if self.position > 0 else f" after a call ({-self.position})"
        return f"{file}:{line} {self.code.co_name}{after}, time {self.occurrence + 1}"


class _Tracer:
    """Is told of each place, on this thread, between ``with`` and its end."""

    def __init__(self, error: type[BaseException], *, after_calls: bool) -> None:
        self.error = error
        self._after_calls = after_calls
        #: Code and position → how often it was come by.
        self._times: dict[tuple[CodeType, int], int] = {}
        #: Raised where Python lets nothing be raised.
        self.ignored = False

    def __enter__(self) -> None:
        self._hook, sys.unraisablehook = sys.unraisablehook, self._ignore
        sys.settrace(self._called)

    def __exit__(self, *raised: Any) -> None:
        sys.settrace(None)
        sys.unraisablehook = self._hook

    def _ignore(self, _: Any) -> None:
        self.ignored = True

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE_FOLDER) or not self._interests(code):
            return None
        if self.error in KEPT and frame.f_back is not None and frame.f_back.f_code.co_filename == _CALLER:
            return None
        if self._after_calls:
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            return self._instruction
        return self._line

    def _interests(self, code: CodeType) -> bool:
        return True

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and (self.error in PASSED_ON or frame.f_lineno in _may_fail(frame.f_code)):
            self._come_by(frame, frame.f_lineno)
        return self._line

    def _instruction(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode" and frame.f_lasti in _follow_calls(frame.f_code):
            self._come_by(frame, -frame.f_lasti)
        return self._instruction

    def _come_by(self, frame: FrameType, position: int) -> None:
        key = frame.f_code, position
        time = self._times.get(key, 0)
        self._times[key] = time + 1
        self._arrived(frame, position, time)

    def _arrived(self, frame: FrameType, position: int, time: int) -> None:
        """The place is come by for another time."""


class Survey(_Tracer):
    """Notes all places."""

    def chosen(self, occurrences: int) -> Sequence[Place]:
        """Each place as often as it was come by, ``occurrences`` times at most: the first, the last, and between."""
        return [
            Place(code, position, time)
            for (code, position), times in self._times.items()
            for time in sorted(_spread(times, occurrences))
        ]

    @property
    def passed(self) -> int:
        """How many lines (or calls) were run in all."""
        return sum(self._times.values())


class Interruption(_Tracer):
    """Raises ``error`` at one place."""

    def __init__(self, error: type[BaseException], place: Place) -> None:
        super().__init__(error, after_calls=place.position <= 0)
        self.place = place
        self.happened = False
        #: Whether it came in the very method that the training called, before or after all that this does.
        self.in_the_call = False

    def _interests(self, code: CodeType) -> bool:
        return code is self.place.code

    def _arrived(self, frame: FrameType, position: int, time: int) -> None:
        if position == self.place.position and time == self.place.occurrence:
            self.happened = True
            self.in_the_call = frame.f_back is not None and frame.f_back.f_code.co_filename == _CALLER
            sys.settrace(None)
            raise self.error("raised by torture")


def _spread(times: int, most: int) -> set[int]:
    """Numbers below ``times``, ``most`` at most: the first, the last, and between."""
    if times <= most:
        return set(range(times))
    return {round(index * (times - 1) / max(most - 1, 1)) for index in range(most)}


@cache
def _may_fail(code: CodeType) -> frozenset[int]:
    """The lines at which an error may come about."""
    found, line = set(), 0
    for instruction in dis.get_instructions(code):
        line = instruction.starts_line or line
        if instruction.opname.startswith(_MAY_FAIL) and not _USERS_CALL.search(getline(code.co_filename, line)):
            found.add(int(line))
    return frozenset(found)


@cache
def _follow_calls(code: CodeType) -> frozenset[int]:
    """Offsets of the instructions before which Python looks whether a signal came."""
    return frozenset(
        after.offset for call, after in pairwise(dis.get_instructions(code)) if call.opname.startswith("CALL")
    )


def _line_of(code: CodeType, offset: int) -> int:
    return next((line for begin, end, line in code.co_lines() if line and begin <= offset < end), 0)
