"""Level debug: record values that the script itself hands over with ``debugger.save``, and their gradients."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msprobe_ms.dump.names import DEBUG, NAMES_ACCEPTED, is_name
from msprobe_ms.dump.writing.json_text import Value, Whole
from msprobe_ms.dump.writing.writer import EntryPart
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.containers import Walk
from msprobe_ms.recording.debuggers import MethodOfCurrent
from msprobe_ms.recording.gradients import Plan, fill
from msprobe_ms.recording.output.step_dump import StepDump
from msprobe_ms.recording.selection.filters import NameList
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.log import LogOnce, logger
from msprobe_ms.support.patching import Hooks, install, remove
from msprobe_ms.support.process import ThisProcess
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.config import Config
    from msprobe_ms.recording.step import Step

#: The longest entry that is made of a name.
_LONGEST_ENTRY = f"{{}}_grad.{2**63}.{DEBUG}"


class SavePoints:
    """What is saved in one step: entries ``{name}.{n}.debug`` and ``{name}_grad.{n}.debug``, ``n`` counts the name."""

    def __init__(self, config: Config, framework: Framework, dump: StepDump) -> None:
        self.framework = framework
        self._sink = dump.sinks.first
        self._errors = dump.errors
        self._values = dump.values
        self._save_all = config.task == "tensor"
        self._save_some = NameList(config.tensor_list) if config.tensor_list else None
        self._counters: dict[str, int] = {}
        self._lock = threading.RLock()  # a signal handler may end the recording meanwhile
        self._hooks: list[Hooks] = []
        self._closed = False
        self._process = ThisProcess()

    def save(self, variable: Any, name: str, save_backward: bool) -> None:
        """Record ``variable`` as it is now; its tensors' gradients, too, when backward reaches them. Never raises."""
        if not self._is_open() or self.framework.is_tracing():
            return
        if not is_name(_LONGEST_ENTRY.format(name)):  # no reader would take the dump
            logger.warning(
                tr(
                    "save: the name {name:.60s}… is too long, not recorded; {names_accepted}",
                    name=name,
                    names_accepted=NAMES_ACCEPTED,
                )
            )
            return
        with self._lock:
            index = self._counters.get(name, 0)
            self._counters[name] = index + 1
        entry = f"{name}.{index}.{DEBUG}"
        quiet = self.framework.quiet()
        try:
            with self.framework.unseen(), quiet:
                leaf = self._values.build(variable, entry, "", (), self._saves(entry))
            if leaf is None and variable is not None:
                logger.warning(
                    tr(
                        "save: {name} is a {other_name}, which has no place in a dump: null",
                        name=name,
                        other_name=type(variable).__name__,
                    )
                )
            self._sink.entry(EntryPart(entry, [("", Whole(leaf))]))
            if save_backward:
                with self.framework.unseen():
                    _Gradients(self, variable, f"{name}_grad.{index}.{DEBUG}").watch()
        except Exception as error:
            self._errors.report(error, entry)
        finally:
            quiet.restore()  # where something interrupted its beginning or its end

    def close(self) -> None:
        """The step is over: gradients that come later belong to nothing."""
        self._closed = True
        remove(self._hooks)

    def _is_open(self) -> bool:
        return not self._closed and self._process.is_mine

    def _saves(self, entry: str) -> bool:
        return self._save_all or (self._save_some is not None and self._save_some.accepts(entry))

    def watch(self, tensor: Any, on_gradient: Any) -> None:
        hook = self.framework.watch_gradient(tensor, on_gradient)
        if hook is not None:
            install([hook], self._hooks)

    def gradient_leaf(self, gradient: Any, entry: str, path: tuple[str, ...]) -> Value:
        with self.framework.unseen(), self.framework.quiet():
            return self._values.build(gradient, entry, "", path, self._saves(entry))

    def record_gradients(self, entry: str, value: Value) -> None:
        self._sink.entry(EntryPart(entry, [("", Whole(value))]))

    def when_open(self, entry: str, action: Any) -> None:
        """Run ``action``, in the midst of the framework's backward: nothing may escape into it."""
        if self._is_open():
            try:
                action()
            except Exception as error:
                self._errors.report(error, entry)


class _Places(Walk):
    """Makes a plan of a saved value; ``tensors`` are those to watch, each with its path."""

    def __init__(self, framework: Framework) -> None:
        super().__init__(framework.is_tensor)
        self.framework = framework
        self.tensors: list[tuple[Any, tuple[str, ...]]] = []

    def tensor(self, value: Any) -> int | None:
        if not self.framework.can_watch(value, parameters=True):
            return None
        self.tensors.append((value, self.place))
        return len(self.tensors) - 1

    def plain(self, value: Any) -> None:
        return None


class _Gradients:
    """The gradients of one saved value: nested as the value is, null where none has come (yet)."""

    def __init__(self, points: SavePoints, variable: Any, entry: str) -> None:
        self._points = points
        self._entry = entry
        places = _Places(points.framework)
        self._plan: Plan = places.of(variable)
        self._tensors = places.tensors
        self._leaves: dict[int, Value] = {}

    def watch(self) -> None:
        tensors, self._tensors = self._tensors, []  # held no longer than the value itself
        if not tensors:
            return
        self._record()
        for place, (tensor, path) in enumerate(tensors):
            self._points.watch(tensor, partial(self._arrived, place, path))

    def _arrived(self, place: int, path: tuple[str, ...], gradient: Any) -> None:
        def record() -> None:
            if isinstance(gradient, Exception):
                raise gradient
            self._leaves[place] = self._points.gradient_leaf(gradient, self._entry, path)
            self._record()

        self._points.when_open(self._entry, record)

    def _record(self) -> None:
        values: Sequence[Any] = fill([self._plan], lambda place, _: self._leaves.get(place))
        self._points.record_gradients(self._entry, values[0])


class SavesValues:
    """The part of a debugger that level debug needs."""

    config: Config
    _say_once: LogOnce
    _guarded: Callable[..., None]
    _step_to_save_in: Callable[[], Step | None]

    @MethodOfCurrent
    def save(self, variable: Any, name: str, save_backward: bool = True) -> None:
        """Level debug: record ``variable`` as it is now, and the gradients of its tensors when backward reaches them.

        ``variable`` is a tensor, a number, a text, or lists, tuples and dictionaries of these. Neither ``start`` nor
        ``stop`` is needed. At the other levels the call does nothing, so that it may stay in the script.

        Raises UsageError for a ``name`` that is no text.
        """
        if not isinstance(name, str) or not name:
            raise UsageError(tr('save: name {name} is not accepted; give a text, such as "loss"', name=repr(name)))
        if self.config.level != "debug":
            text = f'save: level {self.config.level} does not record saved values, level "debug" does'
            return self._say_once(logging.INFO, text)
        self._guarded("save", partial(self._save, variable, name, save_backward))

    def _save(self, variable: Any, name: str, save_backward: bool) -> None:
        if (opened := self._step_to_save_in()) is not None:
            opened.save(variable, name, bool(save_backward))
