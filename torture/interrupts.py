"""Interrupt a recording at every line of the tool, and look whether training is left as it was.

python -m torture.interrupts                                       # every line, hours
python -m torture.interrupts --every 97 --framework pytorch        # a sample
python -m torture.interrupts --phase stop --error MemoryError

A small net is recorded over one step, in five phases: start, forward, backward, stop, step. In one of them an exception
is raised as the N-th line of the tool's begins, for every N. KeyboardInterrupt and SystemExit must arrive at the
training, MemoryError and RecursionError must not (raised only where a line calls or makes something). Then the training
calls `stop` and `step`, and another step is recorded. In the end nothing of the framework, the net or the process may
have changed, the step that was interrupted must be whole or say that it is not, and the other one must be whole.
"""

from __future__ import annotations

import argparse
import dis
import gc
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from linecache import getline
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any, Protocol

from msprobe_ms.dump.writing.journal import JOURNAL_NAME
from msprobe_ms.support.files import PACKAGE_FOLDER
from torture.harness import Outcome, Tool, main

FRAMEWORKS = ("pytorch", "mindspore")
PHASES = ("start", "forward", "backward", "stop", "step")
#: Those that must arrive at the training, and those that must not.
PASSED_ON: tuple[type[BaseException], ...] = (KeyboardInterrupt, SystemExit)
KEPT: tuple[type[BaseException], ...] = (MemoryError, RecursionError)
ERRORS = {error.__name__: error for error in (*PASSED_ON, *KEPT)}

#: Attributes in which frameworks count and remember.
_COUNTED = {"__slotnames__", "total_instance_count"}

#: What instructions that may fail begin with: they call something, or make it.
_MAY_FAIL = ("BINARY", "BUILD", "CALL", "DICT", "FORMAT", "GET_ITER", "IMPORT", "LIST", "MAKE", "MAP", "PRECALL", "SET")

#: Lines that call what the training has called: what comes there is the training's own.
_USERS_CALL = re.compile(r"\b(function|original|call|launch)\((executor|operator|\*args)")


class Training(Protocol):
    """A net of one framework, and all that may be changed around it. ``debugger`` makes a `PrecisionDebugger`."""

    debugger: Callable[..., Any]
    net: Any

    def forward(self) -> Any: ...

    def backward(self, loss: Any) -> None: ...

    def holders(self) -> Sequence[Any]:
        """Modules and classes whose attributes are looked at."""
        ...

    def state(self) -> dict[str, Any]:
        """What else must stay as it is: hooks, hooks on parameters, modes, random numbers; plain values by name."""
        ...

    def restore(self) -> None:
        """Put that back, for the next."""
        ...


class Interruption:
    """Raises ``error`` as line ``number`` of the tool's begins, on this thread, between ``with`` and its end."""

    def __init__(self, error: type[BaseException], number: int) -> None:
        self._error = error
        self._number = number
        self.lines = 0
        self.place = ""
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
        if not frame.f_code.co_filename.startswith(PACKAGE_FOLDER):
            return None
        if self._error in KEPT and frame.f_back is not None and frame.f_back.f_code.co_filename == __file__:
            return None  # the call of `start`, `stop` or `step` itself fails as any call of the training's would
        return self._line

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and (self._error in PASSED_ON or frame.f_lineno in _may_fail(frame.f_code)):
            self.lines += 1
            if self.lines == self._number:
                code = frame.f_code
                self.place = f"{code.co_filename.removeprefix(PACKAGE_FOLDER)}:{frame.f_lineno} {code.co_name}"
                sys.settrace(None)
                raise self._error("raised by torture")
        return self._line


def _read(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else {}


@cache
def _may_fail(code: CodeType) -> frozenset[int]:
    """The lines at which an error may come about."""
    found, line = set(), 0
    for instruction in dis.get_instructions(code):
        line = instruction.starts_line or line
        if instruction.opname.startswith(_MAY_FAIL) and not _USERS_CALL.search(getline(code.co_filename, line)):
            found.add(int(line))
    return frozenset(found)


class Trials:
    """The trials of one framework, in this process."""

    def __init__(self, training: Training, folder: Path, settings: dict[str, Any]) -> None:
        self._training = training
        self._folder = folder
        self._settings = settings
        self._count = 0
        self._attributes = {id(each): (each, dict(vars(each))) for each in training.holders()}
        for _ in range(2):  # what is made when it is first needed is there afterwards
            self._reference: dict[str, Any] = {}
            self.trial("", None)
        self._state = training.state()
        self._attributes = {key: (each, dict(vars(each))) for key, (each, _) in self._attributes.items()}
        self._reference = self._dumps()[0][1]

    def trial(self, phase: str, interruption: Interruption | None) -> list[str]:
        """Record a step, interrupted in ``phase``, and another one; what is wrong."""
        training, problems = self._training, list[str]()
        self._count += 1
        debugger = training.debugger(dump_path=self._folder / str(self._count), **self._settings)
        loss: Any = None

        def forward() -> None:
            nonlocal loss
            loss = training.forward()

        phases: dict[str, Callable[[], None]] = {
            "start": lambda: debugger.start(training.net), "forward": forward,
            "backward": lambda: training.backward(loss), "stop": debugger.stop, "step": debugger.step,
        }  # fmt: skip
        raised: BaseException | None = None
        for name, action in phases.items():
            try:
                if name == phase and interruption is not None:
                    with interruption:
                        action()
                else:
                    action()
            except BaseException as error:
                if name != phase:
                    problems.append(f"{name} raised {type(error).__name__}: {error}")
                raised = error
                break
        if interruption is not None and interruption.place and not interruption.ignored:
            problems += self._arrival(interruption, raised)
        arrived, raised, loss = raised is not None, None, None
        if arrived:
            problems += self._attempt("another stop", debugger.stop)
            problems += self._differences("after another stop", hooks_on_parameters=True)
            problems += self._attempt("another step", debugger.step)
        problems += self._differences("afterwards")
        for name, action in phases.items():
            problems += self._attempt(f"{name} of the next step", action)
        problems += self._differences("after the next step")
        problems += self._dumped(arrived=arrived)
        debugger.retire()
        return problems

    def _arrival(self, interruption: Interruption, raised: BaseException | None) -> list[str]:
        kept = interruption._error in KEPT
        if kept and raised is not None:
            return [f"training got {type(raised).__name__}"]
        if not kept and not isinstance(raised, interruption._error):
            return [f"training did not get it but {type(raised).__name__}"]
        return []

    def _attempt(self, name: str, action: Callable[[], object]) -> list[str]:
        try:
            action()
        except BaseException as error:
            return [f"{name} raised {type(error).__name__}: {str(error)[:100]}"]
        return []

    def _differences(self, when: str, *, hooks_on_parameters: bool = False) -> list[str]:
        """What of the process is not as it was; it is put back for the next.

        Hooks on parameters may stay until `step`: their gradients may come after `stop`.
        """
        if not self._reference:
            return []
        changed: list[str] = []
        for holder, before in self._attributes.values():
            now = dict(vars(holder))
            for name in [each for each in before if now.get(each, Trials) is not before[each] and each not in _COUNTED]:
                changed.append(f"{holder.__name__}.{name}")
                setattr(holder, name, before[name])
            for name in now.keys() - before.keys() - _COUNTED:
                changed.append(f"{holder.__name__}.{name}")
                delattr(holder, name)
        state = self._training.state()
        if hooks_on_parameters:
            del state["hooks on parameters"]
        changed += [f"{name} is {str(state[name])[:40]}" for name in state if state[name] != self._state[name]]
        if changed:
            self._training.restore()
        gc.enable()
        shown = ", ".join(changed[:3])
        return [f"{when} {len(changed)} attributes changed: {shown}"] if changed else []

    def _dumps(self) -> list[tuple[bool, dict[str, Any]]]:
        """Of each step whether a journal is there, and dump.json."""
        steps = (self._folder / str(self._count)).glob("step*/*")
        return [
            ((each / JOURNAL_NAME).exists(), _read(each / "dump.json")) for each in sorted(steps) if any(each.iterdir())
        ]

    def _dumped(self, *, arrived: bool) -> list[str]:
        if not self._reference:
            return []
        try:
            dumps = self._dumps()
        except ValueError as error:
            return [f"a dump cannot be read: {error}"]
        expected, problems = list(self._reference["data"]), list[str]()
        journal, last = dumps[-1] if dumps else (False, {})
        if journal or list(last.get("data", ())) != expected:
            problems.append(
                f"the next step has {len(last.get('data', ()))} entries of {len(expected)}, journal {journal}"
            )
        for journal, dump in dumps[:-1] if not arrived else ():
            told = journal or any("incomplete" in key for key in dump)
            if list(dump.get("data", ())) != expected and not told:
                problems.append(f"{len(dump.get('data', ()))} entries of {len(expected)}, and nothing says so")
        return problems


class Interrupts(Tool):
    module = "torture.interrupts"

    @staticmethod
    def add_options(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--framework", nargs="+", choices=FRAMEWORKS, default=FRAMEWORKS)
        parser.add_argument("--phase", nargs="+", choices=PHASES, default=PHASES)
        parser.add_argument("--error", nargs="+", choices=list(ERRORS), default=list(ERRORS))
        parser.add_argument("--every", type=int, default=1, help="only every so-manieth line")
        parser.add_argument("--first", type=int, default=1, help="the first of these lines")
        parser.add_argument("--level", default="mix")
        parser.add_argument("--task", default="statistics")

    def outcomes(self) -> Iterator[Outcome]:
        for framework in self.options.framework:
            for phase in self.options.phase:
                yield from self.apart(f"{framework} {phase}")

    def run(self, case: str) -> Iterator[Outcome]:
        framework, phase = case.split()
        os.environ["MSPROBE_LOG_LEVEL"] = "4"
        training = import_module(f"torture.interrupted_{framework}").make()
        with TemporaryDirectory() as folder:
            trials = Trials(training, Path(folder), {"level": self.options.level, "task": self.options.task})
            for name in self.options.error:
                yield self._each_line(trials, phase, name)

    def _each_line(self, trials: Trials, phase: str, name: str) -> Outcome:
        outcome = Outcome(f"{phase} {name}", figures={"lines": 0, "tried": 0, "failed": 0})
        whole = Interruption(ERRORS[name], 0)
        trials.trial(phase, whole)
        outcome.figures["lines"] = whole.lines
        for number in range(self.options.first, whole.lines + 1, self.options.every):
            interruption = Interruption(ERRORS[name], number)
            problems = trials.trial(phase, interruption)
            outcome.figures["tried"] += 1
            outcome.figures["failed"] += bool(problems)
            if problems:
                outcome.problems.append(f"{interruption.place}: {'; '.join(problems)}")
        return outcome

    def lines(self, outcome: Outcome) -> Iterator[str]:
        yield from super().lines(outcome)
        figures = outcome.figures
        if figures:
            yield f"{outcome.case}: {figures['tried']} of {figures['lines']} lines, {figures['failed']} with problems"


if __name__ == "__main__":
    sys.exit(main(Interrupts))
