"""Calls of modules inside compiled graphs → the entries that the same calls have in a dynamic graph.

The graph tells what happens as it runs, on any thread: the beginnings and ends of calls in the order of the program,
tensors and gradients when they are there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from msprobe_ms.dump.names import BACKWARD, FORWARD, PARAMETERS_GRAD
from msprobe_ms.dump.writing.json_text import TensorLeaf, Value
from msprobe_ms.dump.writing.memory_budget import OutOfMemory
from msprobe_ms.dump.writing.writer import EntryPart
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.frameworks.graph_observer import Described, Layout, Path, Place, Tapped, TensorStatistics, Unknown
from msprobe_ms.recording.calls import Call, Subject
from msprobe_ms.recording.gradients import Plan, fill
from msprobe_ms.recording.output.step_dump import StepDump
from msprobe_ms.recording.step_recorder import StepRecorder
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.config import Config

#: Marks what takes no part in a backward entry: what is no tensor.
_SKIP: Any = object()

#: The fields of a forward entry in which `Place.field` stands.
_INPUTS = ("input", "kwargs")


def tapped_by(data_mode: Collection[str], task: str, *, parameters: bool = True) -> Tapped:
    """What of calls in graphs such a configuration needs."""
    values, modes = task != "structure", set(data_mode)
    return Tapped(
        values=values and not modes <= {BACKWARD},
        parameters=values and parameters and bool(modes & {"all", FORWARD, "input", "parameters"}),
        gradients=not modes <= {FORWARD, "parameters"},
    )


class _Flight:
    """One call while its step lasts: what came of it so far."""

    def __init__(self, call: Call, args: Layout, kwargs: Layout) -> None:
        self.call = call
        self.args, self.kwargs = args, kwargs
        self.output: Layout = None
        self.ended = False
        #: Leaves by field and path, of the forward and of the backward entry.
        self.values: dict[tuple[str, Path], Value] = {}
        self.gradients: dict[tuple[str, Path], Value] = {}
        #: By field of the backward entry: its structure, and where in it the gradient of a place stands.
        self.plans: dict[str, tuple[list[Plan], dict[tuple[str, Path], Path]]] = {}


class _Early(NamedTuple):
    """A gradient that came before what it waits for: graphs run what they can as soon as they can."""

    #: The call whose end it waits for; None for a parameter's.
    flight: _Flight | None
    take: Callable[[np.ndarray | TensorStatistics], None]
    value: np.ndarray | TensorStatistics


class GraphRecorder(StepRecorder):
    """Records the calls of one step that run inside graphs into its dump; nothing raises into the graph."""

    def __init__(self, config: Config, framework: Framework, dump: StepDump) -> None:
        super().__init__(config, framework, dump)
        self._budget = dump.budget
        self._subjects: list[Subject] = []
        self._flights: dict[int, _Flight] = {}
        self._open: list[int] = []
        #: By module and parameter: how many calls there were when its gradient was told last, and its index.
        self._sums: dict[tuple[str, str], tuple[int, int]] = {}
        #: In the order in which they came. With ``scope`` they wait until no call is open: whether the range has begun
        #: or ended is told by the order of the program, in which forward comes first.
        self._early: list[_Early] = []
        self._in_order = config.scope is not None
        #: Backward entries that came while calls were open: in a dump, as in a dynamic graph, forward comes first.
        self._waiting: list[tuple[str, list[tuple[str, Value]], str | None]] = []
        #: Calls whose backward pass runs, each inside the one before.
        self._backwards: list[Call] = []
        #: Whether gradients have come.
        self.saw_backward = False

    def observe(self, bases: Sequence[str]) -> None:
        """What the numbers of modules mean from here on: what their entries start with."""
        self._subjects = [Subject(base, is_module=True) for base in bases]

    def close(self) -> None:
        """The step is over: what still comes belongs to nothing."""
        with self._lock:
            super().close()
            self._flights.clear()

    @property
    def _takes(self) -> bool:
        return self._is_open() and not self._sink.full

    def pause(self) -> None:
        """No graph runs any more; what one that failed left open is over."""
        with self._lock:
            self._open.clear()
            self._take_early()
            self._settle()

    def _backward(self, entry: str, fields: list[tuple[str, Value]], parent: str | None = None) -> None:
        self._waiting.append((entry, fields, parent))
        if not self._open:
            self._settle()

    def _settle(self) -> None:
        """Nothing is open: what waited for that is recorded."""
        waiting, self._waiting = self._waiting, []
        for entry, fields, parent in waiting:
            try:
                self._sink.entry(EntryPart(entry, fields, parent))
            except Exception as error:  # the next may find room
                self.errors.report(error, entry)

    # -- forward ---------------------------------------------------------------------------------------------------

    def begins(self, module: int, args: Layout, kwargs: Layout) -> int:
        with self._lock:
            if not self._takes:
                return -1
            subject = self._subjects[module]
            parent = self._flights[self._open[-1]].call if self._open else None
            call = Call(subject, self._number(subject.base), parent, 0)
            call.handled = None
            self._filter.call_begins(call)
            number = len(self._flights)
            self._flights[number] = _Flight(call, args, kwargs)
            self._open.append(number)
            return number

    def value(self, call: int, place: Place, value: np.ndarray | TensorStatistics) -> None:
        with self._lock:
            flight = self._flights.get(call)
            if flight is None or not self._takes:
                return
            if place.is_gradient:
                self._take_or_hold(flight, partial(self._gradient, flight, place), value, flight.call.backward)
            elif flight.call.keep_forward and self._filter.keeps(FORWARD, _forward_field(place.field)):
                entry = flight.call.forward
                leaf = self._leaf(value, place.dtype, entry, place.field, _numbered(place.field, place.path))
                flight.values[place.field, place.path] = leaf

    def _take_or_hold(
        self,
        flight: _Flight | None,
        take: Callable[[np.ndarray | TensorStatistics], None],
        value: np.ndarray | TensorStatistics,
        entry: str,
    ) -> None:
        """Have a gradient taken now, or keep a copy until it may be, if there is room for one."""
        if self._is_due(flight):
            return take(value)
        if isinstance(value, np.ndarray):
            if not self._budget.take_when_free(value.nbytes):
                problem = OutOfMemory(f"{self._budget} was in use when the gradient came before its call had ended")
                return self.errors.report(problem, entry)
            value = value.copy()
        self._early.append(_Early(flight, take, value))
        return None

    def _is_due(self, flight: _Flight | None) -> bool:
        return (flight is None or flight.ended) and not (self._in_order and self._open)

    def _take_early(self) -> None:
        due = [each for each in self._early if self._is_due(each.flight)]
        self._early = [each for each in self._early if not self._is_due(each.flight)]
        for early in due:
            if isinstance(early.value, np.ndarray):
                self._budget.give(early.value.nbytes)
            early.take(early.value)

    def _leaf(self, value: np.ndarray | TensorStatistics, dtype: str, entry: str, category: str, path: Path) -> Value:
        save = self._filter.saves(entry)
        if isinstance(value, np.ndarray):
            return self._values.of_array(value, dtype, entry, category, path, save)
        if save:
            self.errors.note(tr("tensors whose shape only the running graph knows have figures, but no files"))
        figures = (None,) * 4 if 0 in value.shape else value[1:]
        return TensorLeaf(self._framework.dialect.tensor_type, dtype, value.shape, *figures)

    def ends(self, call: int, output: Layout) -> None:
        with self._lock:
            flight = self._flights.get(call)
            if flight is None or not self._takes:
                return
            while call in self._open and self._open.pop() != call:
                continue
            flight.output, flight.ended = output, True
            flight.plans = {"input": _planned(flight, "input"), "output": _planned(flight, "output")}
            self._filter.ends(flight.call.forward)
            if flight.call.keep_forward:
                self._record_forward(flight)
            self._take_early()
            if not self._open:
                self._settle()

    def _record_forward(self, flight: _Flight) -> None:
        keeps, fields = self._filter.keeps, list[tuple[str, Value]]()
        if keeps(FORWARD, "input_args"):
            args, kwargs = self._filled(flight, "input", flight.args), self._filled(flight, "kwargs", flight.kwargs)
            fields += [("input_args", args)]
            fields += [("input_kwargs", kwargs)]
        if keeps(FORWARD, "output"):
            output = self._filled(flight, "output", flight.output)
            fields.append(("output", output if isinstance(output, list) else [output]))
        if keeps(FORWARD, "parameters"):
            named = {path[0]: leaf for (field, path), leaf in flight.values.items() if field == "parameters"}
            if named:
                fields.append(("parameters", named))
        self._sink.entry(EntryPart(flight.call.forward, fields, flight.call.parent_entry(FORWARD)))
        flight.values.clear()

    def _filled(self, flight: _Flight, field: str, layout: Layout, path: Path = ()) -> Value:
        if isinstance(layout, Described):
            if layout.shape is not None and 0 in layout.shape:
                tensor_type = self._framework.dialect.tensor_type
                return TensorLeaf(tensor_type, layout.dtype, layout.shape, None, None, None, None)
            return flight.values.get((field, path))
        if isinstance(layout, list):
            return [self._filled(flight, field, each, (*path, str(index))) for index, each in enumerate(layout)]
        if isinstance(layout, dict):
            return {key: self._filled(flight, field, each, (*path, key)) for key, each in layout.items()}
        if layout is Unknown.VALUE:
            return None
        return self._values.build(layout, flight.call.forward, field, path, False)

    # -- backward --------------------------------------------------------------------------------------------------

    def _gradient(self, flight: _Flight, place: Place, value: np.ndarray | TensorStatistics) -> None:
        call, self.saw_backward = flight.call, True
        first, call.backward_begun = not call.backward_begun, True
        if first:
            self._backward_begins(call)
        if not call.keep_backward:
            return
        field = "output" if place.field in _INPUTS else "input"
        if self._filter.keeps(BACKWARD, field):
            path = flight.plans[field][1][place.field, place.path]
            flight.gradients[field, path] = self._leaf(value, place.dtype, call.backward, field, path)
        # Both fields are there from the first gradient on, as in a dynamic graph.
        changed = [each for each in ("input", "output") if first or each == field]
        fields = [(each, self._gradient_values(flight, each)) for each in changed if self._filter.keeps(BACKWARD, each)]
        self._backward(call.backward, fields, call.parent_entry(BACKWARD))

    def _backward_begins(self, call: Call) -> None:
        """Graphs tell no end of a call's backward pass: it is over where that of a call outside it begins."""
        outside, above = [], call.parent
        while above is not None:
            outside.append(above)
            above = above.parent
        while self._backwards and self._backwards[-1] not in outside:
            self._filter.ends(self._backwards.pop().backward)
        self._backwards.append(call)
        self._filter.backward_begins(call)

    def _gradient_values(self, flight: _Flight, field: str) -> Value:
        return fill(flight.plans[field][0], lambda _, path: flight.gradients.get((field, path)))

    def parameter_gradient(self, module: int, name: str, dtype: str, gradient: np.ndarray | TensorStatistics) -> None:
        """Loops tell what they have summed up so far, and the last is whole; a new sum begins after further calls."""
        with self._lock:
            if not self._takes:
                return
            self.saw_backward = True
            take = partial(self._parameter_gradient, self._subjects[module].base, name, dtype)
            self._take_or_hold(None, take, gradient, f"{self._subjects[module].base}.{PARAMETERS_GRAD}")

    def _parameter_gradient(self, base: str, name: str, dtype: str, gradient: np.ndarray | TensorStatistics) -> None:
        calls, index = self._sums.get((base, name), (-1, 0))
        if calls != len(self._flights):
            index = self._count(f"{base}.{PARAMETERS_GRAD}.{name}")
        self._sums[base, name] = len(self._flights), index
        entry = f"{base}.{PARAMETERS_GRAD}.{index}"
        if self._filter.parameter(entry, base):
            leaf = self._leaf(gradient, dtype, entry, "", (name,))
            self._backward(entry, [(name, [leaf])])


def _forward_field(field: str) -> str:
    return "input_args" if field in _INPUTS else field


def _numbered(field: str, path: Path) -> Path:
    """A result that is no tuple is the first of one."""
    return path if path or field != "output" else ("0",)


def _plan(layout: Layout, seen: list[tuple[str, Path]], name: str, path: Path) -> Plan:
    """The plan of what stands at ``name``.``path`` of a call; places that take gradients are added to ``seen``."""
    if isinstance(layout, Described):
        if not layout.takes_gradient:
            return None
        seen.append((name, path))
        return len(seen) - 1
    if isinstance(layout, list):
        members = [_plan(each, seen, name, (*path, str(index))) for index, each in enumerate(layout)]
        return [each for each in members if each is not _SKIP] or _SKIP
    if isinstance(layout, dict):
        named = {key: _plan(each, seen, name, (*path, key)) for key, each in layout.items()}
        return {key: each for key, each in named.items() if each is not _SKIP} or _SKIP
    return _SKIP


def _planned(flight: _Flight, field: str) -> tuple[list[Plan], dict[tuple[str, Path], Path]]:
    """Where gradients stand in a backward entry: the plan of the field, and by place in the call the path in it."""
    seen: list[tuple[str, Path]] = []
    if field == "output":
        plans = [_plan(each, seen, "input", (str(index),)) for index, each in enumerate(flight.args)]
        plans += [_plan(each, seen, "kwargs", (key,)) for key, each in flight.kwargs.items()]
    elif isinstance(flight.output, list):
        plans = [_plan(each, seen, "output", (str(index),)) for index, each in enumerate(flight.output)]
    else:
        plans = [_plan(flight.output, seen, "output", ())]
    kept = [each for each in plans if each is not _SKIP]
    places: dict[tuple[str, Path], Path] = {}
    fill(kept, lambda position, path: places.setdefault(seen[position], path))
    return kept, places
