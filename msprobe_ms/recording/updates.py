"""Record what optimizers make of a step's parameters: entries ``Optimizer.{path of the parameter}.{n}.forward``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from msprobe_ms.dump.names import FORWARD, OPTIMIZER, api_entry
from msprobe_ms.dump.writing.json_text import Value
from msprobe_ms.dump.writing.writer import EntryPart
from msprobe_ms.frameworks.optimizers import ParameterUpdate
from msprobe_ms.recording.output.values import ValueSerializer
from msprobe_ms.recording.selection.filters import CallFilter

if TYPE_CHECKING:
    from msprobe_ms.recording.output.step_dump import EntrySink


class _Begun(NamedTuple):
    """An update that is being made."""

    entry: str
    parameter: Any
    fields: list[tuple[str, Value]]


class Updates:
    """Records the updates of one step."""

    def __init__(
        self,
        sink: EntrySink,
        values: ValueSerializer,
        call_filter: CallFilter,
        guarded: Callable[[str, Callable[[], None]], None],
        is_open: Callable[[], bool],
        count: Callable[[str], int],
    ) -> None:
        """``guarded``, ``is_open`` and ``count`` as those of `Backward`."""
        self._sink = sink
        self._values = values
        self._filter = call_filter
        self._guarded = guarded
        self._is_open = is_open
        self._count = count
        #: Identity of a parameter of the model → its path there.
        self.paths: Mapping[int, str] = {}
        #: Identity of an optimizer → the updates that it is making, and how often it is called in its own call.
        self._begun: dict[int, list[_Begun]] = {}
        self._nested: Counter[int] = Counter()

    def close(self) -> None:
        """The step is over: its recorder is let go, and no update is taken."""
        self._is_open, self._guarded = _never, _drop

    def begin(self, optimizer: Any, updates: Callable[[], Iterable[ParameterUpdate]] | None) -> None:
        """An optimizer is called; record what it is given. Without ``updates`` its call has raised."""
        if updates is None:
            self._begun.pop(id(optimizer), None)
            self._nested.pop(id(optimizer), None)
        elif id(optimizer) in self._begun:  # a class runs the step of the one that it derives from
            self._nested[id(optimizer)] += 1
        elif self._is_open() and not self._sink.full:
            self._guarded(OPTIMIZER, partial(self._begin, optimizer, updates))

    def _begin(self, optimizer: Any, updates: Callable[[], Iterable[ParameterUpdate]]) -> None:
        begun = self._begun[id(optimizer)] = []
        for update in updates():
            path = self.paths.get(id(update.parameter))
            if path is None:
                continue
            entry = api_entry(OPTIMIZER, path, self._count(f"{OPTIMIZER}.{path}"), FORWARD)
            if self._filter.keeps_update(entry):
                begun.append(_Begun(entry, update.parameter, self._inputs(entry, update.given)))

    def _inputs(self, entry: str, given: Mapping[str, Any]) -> list[tuple[str, Value]]:
        if not self._filter.keeps(FORWARD, "input_kwargs"):
            return []
        save, build = self._filter.saves(entry), self._values.build
        named = {name: build(value, entry, "kwargs", (name,), save) for name, value in given.items()}
        return [("input_args", []), ("input_kwargs", named)]

    def end(self, optimizer: Any) -> None:
        """Its call is over; record what it made."""
        if self._nested[id(optimizer)]:
            self._nested[id(optimizer)] -= 1
            return
        begun = self._begun.pop(id(optimizer), [])
        for update in begun if self._is_open() else ():
            self._guarded(update.entry, partial(self._end, update))

    def _end(self, update: _Begun) -> None:
        entry, parameter, fields = update
        if self._filter.keeps(FORWARD, "output"):
            save = self._filter.saves(entry)
            fields.append(("output", [self._values.build(parameter, entry, "output", ("0",), save)]))
        self._sink.entry(EntryPart(entry, fields))


def _never() -> bool:
    """What says of a step that is over whether it is open."""
    return False


def _drop(where: str, action: Callable[[], None]) -> None:
    """What stands for the recording of updates after the step."""
