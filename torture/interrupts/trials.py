"""Record a small net, interrupted at one place, and look whether everything is left as it was: one trial of many."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from msprobe_ms.dump.writing.journal import JOURNAL_NAME
from torture.interrupts.places import KEPT, Interruption, Survey

PHASES = ("start", "forward", "backward", "stop", "step")

#: Attributes in which frameworks count and remember.
_COUNTED = {"__slotnames__", "total_instance_count"}


class Training(Protocol):
    """A net of one framework, and all that may be changed around it. ``debugger`` makes a `PrecisionDebugger`."""

    debugger: Callable[..., Any]
    net: Any
    #: The ways in which it can run; ``way`` is that of the next trial.
    ways: Sequence[str]
    way: str

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


class Trials:
    """The trials of one framework, in this process."""

    def __init__(self, training: Training, folder: Path, settings: dict[str, Any], *, cold: bool = False) -> None:
        """``cold``: what functions of the package remember is forgotten before each trial."""
        self._training = training
        self._folder = folder
        self._settings = settings
        self._cold = cold
        self._count = 0
        self._attributes = {id(each): (each, dict(vars(each))) for each in training.holders()}
        self._expected: dict[str, Any] = {}
        for way in (*training.ways, training.ways[0]):  # what is made when it is first needed is there afterwards
            training.way = way
            self.trial("", None)
        self._state = self._look()
        self._attributes = {key: (each, dict(vars(each))) for key, (each, _) in self._attributes.items()}
        self._expected = self._dumps()[0][1]["data"]
        gc.collect()
        gc.freeze()  # only what trials leave is looked through

    def trial(self, phase: str, interruption: Interruption | Survey | None) -> list[str]:
        """Record a step, interrupted in ``phase``, and another one; what is wrong."""
        self._count += 1
        if self._cold:
            _forget()
        debugger = self._training.debugger(dump_path=self._folder / str(self._count), **self._settings)
        phases = self._phases(debugger)
        problems, raised = self._interrupted(phases, phase, interruption)
        if isinstance(interruption, Interruption) and interruption.happened and not interruption.ignored:
            problems += _arrival(interruption, raised)
        arrived, raised = raised is not None, None
        if arrived:
            if phase in ("start", "stop", "step") and not getattr(interruption, "in_the_call", False):
                problems += self._differences("at once", hooks_on_parameters=True)
            problems += _attempt("another stop", debugger.stop)
            problems += self._differences("after another stop", hooks_on_parameters=True)
            problems += _attempt("another step", debugger.step)
        problems += self._differences("afterwards", hooks_on_parameters=False)
        for name, action in phases.items():
            problems += _attempt(f"{name} of the next step", action)
        problems += self._dumped(cut=arrived and phase not in ("stop", "step"))
        debugger.retire()
        del debugger, phases
        if isinstance(interruption, Interruption) and interruption.ignored:  # a descriptor may be left open by it
            self._state["descriptors"] = self._look()["descriptors"]
        problems += self._differences("in the end")
        return problems

    def _phases(self, debugger: Any) -> dict[str, Callable[[], object]]:
        training, loss = self._training, list[Any]()
        return {
            "start": lambda: debugger.start(training.net),
            "forward": lambda: loss.append(training.forward()),
            "backward": lambda: training.backward(loss.pop()),
            "stop": debugger.stop,
            "step": debugger.step,
        }

    def _interrupted(
        self, phases: dict[str, Callable[[], object]], phase: str, interruption: Interruption | Survey | None
    ) -> tuple[list[str], BaseException | None]:
        """Go through the phases until something is raised."""
        problems = list[str]()
        for name, action in phases.items():
            try:
                if name == phase and interruption is not None:
                    with interruption:
                        action()
                else:
                    action()
                if name == "stop" and self._expected:
                    problems += self._differences("after stop", hooks_on_parameters=True)
            except BaseException as error:
                wrong = [] if name == phase else [f"{name} raised {type(error).__name__}: {error}"]
                return problems + wrong, error
        return problems, None

    def _look(self) -> dict[str, Any]:
        gc.collect()
        descriptors = sorted(os.readlink(f"/proc/self/fd/{each}") for each in _descriptors())
        return {**self._training.state(), "garbage collection": gc.isenabled(), "descriptors": descriptors}

    def _differences(self, when: str, *, hooks_on_parameters: bool | None = None) -> list[str]:
        """What of the process is not as it was; it is put back for the next.

        Hooks on parameters may stay until `step`, as their gradients may come after `stop`: ``hooks_on_parameters``.
        Open files may stay until the debugger is gone; None says that it is.
        """
        if not self._expected:
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
        state = self._look() if hooks_on_parameters is None else self._training.state()
        if hooks_on_parameters:
            del state["hooks on parameters"]
        changed += [f"{name} is {str(state[name])[-120:]}" for name in state if state[name] != self._state[name]]
        if changed:
            self._training.restore()
            self._state["descriptors"] = state.get("descriptors", self._state["descriptors"])
        gc.enable()
        shown = ", ".join(changed[:3])
        return [f"{when} {len(changed)} attributes changed: {shown}"] if changed else []

    def _dumps(self) -> list[tuple[bool, dict[str, Any]]]:
        """Of each step whether a journal is there, and dump.json."""
        steps = (self._folder / str(self._count)).glob("step*/*")
        return [
            ((each / JOURNAL_NAME).exists(), _read(each / "dump.json")) for each in sorted(steps) if any(each.iterdir())
        ]

    def _dumped(self, *, cut: bool) -> list[str]:
        """What is wrong with the dumps; of a step that was ``cut`` short, nothing says how much it should hold."""
        if not self._expected:
            return []
        try:
            dumps = self._dumps()
        except ValueError as error:
            return [f"a dump cannot be read: {error}"]
        expected, problems = self._expected, list[str]()
        journal, last = dumps[-1] if dumps else (False, {})
        if journal or last.get("data") != expected:
            problems.append(f"the next step: {_lacking(last, expected)}, journal {journal}")
        for journal, dump in dumps[:-1] if not cut else ():
            told = journal or any("incomplete" in key for key in dump)
            if dump.get("data") != expected and not told:
                problems.append(f"nothing says: {_lacking(dump, expected)}")
        return problems


def _arrival(interruption: Interruption, raised: BaseException | None) -> list[str]:
    kept = interruption.error in KEPT
    if kept and raised is not None:
        return [f"training got {type(raised).__name__}"]
    if not kept and not isinstance(raised, interruption.error):
        return [f"training did not get it but {type(raised).__name__}"]
    return []


def _attempt(name: str, action: Callable[[], object]) -> list[str]:
    try:
        action()
    except BaseException as error:
        return [f"{name} raised {type(error).__name__}: {str(error)[:100]}"]
    return []


def _lacking(dump: dict[str, Any], expected: dict[str, Any]) -> str:
    """How a dump differs from the one that is expected."""
    data = dump.get("data", {})
    other = [name for name, entry in expected.items() if data.get(name) != entry]
    return f"{len(data)} entries of {len(expected)}, {len(other)} not as expected: {', '.join(other)[:100]}"


def _read(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else {}


def _descriptors() -> list[str]:
    return [each for each in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{each}")]


def _forget() -> None:
    """Have functions of the package remember nothing."""
    for name, module in list(sys.modules.items()):
        if name.startswith("msprobe_ms."):
            for each in list(vars(module).values()):
                if hasattr(each, "cache_clear"):
                    each.cache_clear()
