"""One step being recorded: names calls, decides what is kept, summarises, hands records to the store.

Hooks call it in this order for every call, on the thread that makes the call::

    call = recorder.enter(subject)
    args, kwargs = recorder.before(call, args, kwargs)
    output = recorder.after(call, args, kwargs, output, parameters)      # or recorder.abandon(call)

and gradients come back through the watches that ``before`` and ``after`` set. No method raises: an error of ours is
reported once and the host's values pass unchanged.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import CodeType
from typing import Any

from msprobe_ms.callsite import CallSites
from msprobe_ms.config import Config
from msprobe_ms.config.model import CASCADING_LEVELS, TENSOR_TASKS
from msprobe_ms.frameworks.base import Framework, InputWatch
from msprobe_ms.gradients import Plan, Watch, fill
from msprobe_ms.hooks.communication import Communication
from msprobe_ms.leaves import LeafBuilder
from msprobe_ms.misses import Misses
from msprobe_ms.names import BACKWARD, FORWARD, PARAMETERS_GRAD, RECOMPUTE
from msprobe_ms.overflow import OverflowGate
from msprobe_ms.recompute import Recomputation
from msprobe_ms.selection import FieldFilter, NameList, Scope, Skip, Turn
from msprobe_ms.store.text import Value, field_text
from msprobe_ms.store.writer import DumpStore
from msprobe_ms.trouble import Trouble

#: Gives a module's own parameters by name.
Parameters = Callable[[], Iterable[tuple[str, Any]]]


class Subject:
    """What is called: a module (``Cell.fc1.Dense``) or an API (``Functional.relu``), with its name grammar."""

    __slots__ = ("base", "communication", "compiled", "is_module", "scratch", "writes_in_place")

    def __init__(
        self,
        base: str,
        *,
        is_module: bool,
        writes_in_place: bool = False,
        scratch: frozenset[int] = frozenset(),
        communication: Communication | None = None,
        compiled: bool = False,
    ) -> None:
        self.base = base
        self.is_module = is_module
        #: Arguments of such an API must be the caller's own objects, so their gradients are not watched.
        self.writes_in_place = writes_in_place
        #: Positions of results without meaning, recorded as null.
        self.scratch = scratch
        #: Of a function that exchanges tensors with other processes; it has no backward.
        self.communication = communication
        #: One graph, whose kernels nobody sees.
        self.compiled = compiled

    def entry(self, direction: str, index: int) -> str:
        return f"{self.base}.{direction}.{index}" if self.is_module else f"{self.base}.{index}.{direction}"


class Call:
    """One call in flight, and what its gradients need when they come back."""

    __slots__ = (
        "backward", "backward_begun", "depth", "forward", "handled", "input_watch", "inputs", "keep_backward",
        "keep_forward", "launched", "listed_backward", "listed_forward", "output_fields", "parent", "plan",
        "recomputed", "site", "subject", "taken", "turn", "watch",
    )  # fmt: skip

    def __init__(self, subject: Subject, index: int, parent: Call | None, depth: int) -> None:
        self.subject = subject
        self.forward = subject.entry(FORWARD, index)
        self.backward = subject.entry(BACKWARD, index)
        self.parent = parent
        self.depth = depth
        #: Whether ``list`` selects it, by its name or that of a module around it.
        self.listed_forward = self.listed_backward = False
        #: Whether ``skip`` leaves it in; its place among those that take turns.
        self.taken = False
        self.turn: Turn | None = None
        #: What is recorded. Gradients are watched, too, where the scope may begin or end with them.
        self.keep_forward = self.keep_backward = False
        self.recomputed = False
        self.site: int | None = None
        #: Fields known before the call ran.
        self.inputs: list[tuple[str, str]] = []
        #: The arguments' tensors, the framework's watch on them, the places of their gradients.
        self.watch: Watch | None = None
        self.input_watch: InputWatch | None = None
        self.plan: list[Plan] = []
        self.output_fields: list[Plan] = []
        self.backward_begun = False
        #: At level L2: what the kernels seen in it wrote.
        self.launched: list[Any] = []
        #: The exception that the caller was handling when it made the call; another one at its end is the call's own.
        self.handled = sys.exc_info()[1]

    def parent_entry(self, direction: str) -> str | None:
        """The enclosing module's entry."""
        if self.parent is None:
            return None
        return self.parent.forward if direction == FORWARD else self.parent.backward


class _Thread(threading.local):
    """What belongs to one thread: its open calls, and whether the tool itself is at work on it."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.busy = False


class Recorder:
    """Records one step of one process into one store."""

    def __init__(
        self,
        config: Config,
        framework: Framework,
        store: DumpStore | OverflowGate,
        leaves: LeafBuilder,
        trouble: Trouble,
    ) -> None:
        self._config = config
        self._framework = framework
        self._store = store
        self._trouble = trouble
        self._save_all = config.task in TENSOR_TASKS
        self._save_some = NameList(config.tensor_list) if config.tensor_list else None
        self._leaves = leaves
        self._list = NameList(config.list)
        self._cascades = config.level in CASCADING_LEVELS and bool(config.list)
        #: Modules called inside one that ``list`` selected.
        self._opened: set[str] = set()
        self._scope = Scope(config.scope)
        self._skip = Skip(config.skip)
        self._fields = FieldFilter(config.data_mode, values=config.task != "structure")
        self._sites = CallSites(framework.machinery, framework.plumbing, keep_frames=config.extra_info)
        self._recomputation = Recomputation(framework.recomputing)
        self._counters: dict[str, int] = {}
        self._lock = threading.Lock()
        self._thread = _Thread()
        #: Whether any gradient has come back since `resume`; hooks on parameters may go once it has.
        self.saw_backward = False
        #: Parameters whose gradient came after `pause`: only the first belongs to what was recorded.
        self._late: set[tuple[str, str]] | None = None
        self._closed = False
        self._process = os.getpid()

    def resume(self) -> None:
        """Calls come in from here on."""
        self.saw_backward = False
        self._late = None

    def pause(self) -> None:
        """No more calls until `resume`, only gradients of those that were recorded."""
        self._late = set()

    def tell(self, misses: Misses) -> None:
        """Say what of the configuration selected nothing in this step."""
        calls = self._calls()
        if calls and not self._store.full:
            misses.tell(self._config, calls, self._list, self._scope, self._skip, self._save_some)

    def _calls(self) -> dict[str, int]:
        """Name without direction and index → calls in this step."""
        return {base: count for base, count in self._counters.items() if f".{PARAMETERS_GRAD}." not in base}

    def close(self) -> None:
        """The step is over: gradients that come later belong to nothing and are dropped."""
        self._closed = True

    def _is_open(self) -> bool:
        # A forked child (a data loader's worker) inherits the hooks but must not write into its parent's dump.
        return not self._closed and os.getpid() == self._process

    # -- forward ---------------------------------------------------------------------------------------------------

    def enter(self, subject: Subject) -> Call | None:
        """Open a call; None when it is not one of its own: inside another API, or the tool's own doing."""
        thread = self._thread
        if thread.busy or self._store.full or not self._is_open() or self._framework.is_tracing():
            return None
        if not subject.is_module and thread.calls and not thread.calls[-1].subject.is_module:
            return None  # said before the walk of the stack: APIs and operators call each other a lot
        thread.busy = True
        try:
            return self._enter(subject, thread.calls)
        except Exception as error:
            self._trouble.report(error, subject.base)
            return None
        finally:
            thread.busy = False

    def _enter(self, subject: Subject, calls: list[Call]) -> Call | None:
        depth, frames = self._sites.locate(sys._getframe(2), is_module=subject.is_module)
        # An enclosing call always stands on a shallower stack; a deeper one left by an exception and never said so.
        while calls and calls[-1].depth >= depth:
            self._close(calls[-1], calls)
        parent = next((call for call in reversed(calls) if call.subject.is_module), None)
        call = Call(subject, self._count(subject.base), parent, depth)
        call.recomputed = self._framework.in_backward() and self._recomputation.runs(sys._getframe(2))
        self._select(call)
        if frames and self._needs_site(call):
            call.site = self._site(frames)
        calls.append(call)
        return call

    def _needs_site(self, call: Call) -> bool:
        return call.keep_forward

    def _site(self, frames: list[tuple[CodeType, int]]) -> int:
        number, new = self._sites.number(frames)
        if new is not None:
            self._store.call_site(number, new)
        return number

    def _count(self, base: str) -> int:
        with self._lock:
            index = self._counters.get(base, 0)
            self._counters[base] = index + 1
        return index

    def _select(self, call: Call) -> None:
        in_scope = self._scope.begins(call.forward)
        forward, backward = self._list.accepts(call.forward), self._list.accepts(call.backward)
        if self._cascades and call.parent is not None:
            forward, backward = forward or call.parent.listed_forward, backward or call.parent.listed_backward
            if backward:
                self._opened.add(call.subject.base)
        call.listed_forward, call.listed_backward = forward, backward
        subject, inside = call.subject, None if call.parent is None else call.parent.turn
        call.turn, call.taken = self._skip.enter(
            subject.base,
            inside,
            is_module=subject.is_module,
            selected=forward or backward,
            again=call.recomputed,
        )
        call.keep_forward = forward and call.taken and in_scope and self._fields.keeps_any(FORWARD)
        if subject.communication is None:
            # Whether backward falls into the scope shows only when it runs.
            call.keep_backward = self._records_backward(call) or self._scope.bounds(call.backward)

    def _records_backward(self, call: Call) -> bool:
        """Whether its gradients are recorded if they come in the scope."""
        return call.listed_backward and call.taken and self._fields.keeps_any(BACKWARD)

    def innermost(self, subject: Subject) -> Call | None:
        """The open call of this module that the current hook ends; None if it was never opened or has raised."""
        thread = self._thread
        if thread.busy:
            return None
        try:
            depth = self._sites.depth(sys._getframe(1))
            call = next((call for call in reversed(thread.calls) if call.depth <= depth), None)
            if call is None or call.subject is not subject or call.depth != depth:
                return None
            if sys.exc_info()[1] is call.handled:
                return call
            self.abandon(call)
        except Exception as error:
            self._trouble.report(error, subject.base)
        return None

    def before(
        self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Record the inputs as they are now and watch their gradients; the arguments to call with."""
        if not (call.keep_forward or call.keep_backward):
            return args, kwargs
        thread = self._thread
        thread.busy = True
        try:
            with self._framework.quiet():
                self._record_inputs(call, args, kwargs)
            return self._watch_inputs(call, args, kwargs)
        except Exception as error:
            self._trouble.report(error, call.forward)
            return args, kwargs
        finally:
            thread.busy = False

    def _record_inputs(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not call.keep_forward:
            return
        if call.subject.communication is not None:
            args, kwargs = call.subject.communication.recorded(args, kwargs)
        save = self._saves(call.forward)
        build = self._leaves.build
        if self._fields.keeps(FORWARD, "input_args"):
            positional = [build(value, call.forward, "input", (str(i),), save) for i, value in enumerate(args)]
            named = {key: build(value, call.forward, "kwargs", (key,), save) for key, value in kwargs.items()}
            call.inputs += [("input_args", field_text("input_args", positional))]
            call.inputs += [("input_kwargs", field_text("input_kwargs", named))]

    def _watch_inputs(
        self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        in_place = call.subject.writes_in_place or "out" in kwargs or kwargs.get("inplace") is True
        if not call.keep_backward or (in_place and not self._framework.watches_in_place):
            return args, kwargs
        watch = self._new_watch(parameters=not call.subject.is_module)
        values = [*args, *kwargs.values()]
        call.plan = watch.plan(values)
        if not watch.tensors:
            return args, kwargs
        call.input_watch = self._framework.watch_inputs(
            watch.tensors, partial(self._input_gradients, call), is_module=call.subject.is_module
        )
        call.watch = watch
        swapped = watch.swap(values, call.input_watch.tensors)
        return tuple(swapped[: len(args)]), dict(zip(kwargs, swapped[len(args) :], strict=True))

    def _new_watch(self, *, parameters: bool) -> Watch:
        framework = self._framework
        return Watch(framework.is_tensor, partial(framework.can_watch, parameters=parameters))

    def after(
        self,
        call: Call,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        output: Any,
        parameters: Parameters = tuple,
    ) -> Any:
        """Close the call and record it; the value to return instead of ``output`` (equal to it)."""
        thread = self._thread
        thread.busy = True
        try:
            # What an API without a result wrote to stands for its output.
            result = args[0] if output is None and call.subject.writes_in_place and args else output
            if call.subject.communication is not None and call.keep_forward:
                result = call.subject.communication.complete(args, kwargs, output)
            watch = self._plan_output(call, result)
            self._close(call, thread.calls, watch.tensors)
            if call.keep_forward:
                with self._framework.quiet():
                    self._record_output(call, result, parameters)
            if not watch.tensors:
                return output
            twins = self._framework.watch_outputs(watch.tensors, partial(self._output_gradients, call))
            return watch.swap([output], twins)[0]
        except Exception as error:
            self._trouble.report(error, call.forward)
            self.abandon(call)
            return output
        finally:
            thread.busy = False

    @contextmanager
    def blind(self) -> Iterator[None]:
        """Nothing called inside is recorded: a compiler at work, not the user's code."""
        thread = self._thread
        was_busy, thread.busy = thread.busy, True
        try:
            yield
        finally:
            thread.busy = was_busy

    def abandon(self, call: Call) -> None:
        """The call raised: it is closed without a record, and the exception goes its way."""
        try:
            self._close(call, self._thread.calls)
        except Exception as error:
            self._trouble.report(error, call.forward)

    def _close(self, call: Call, calls: list[Call], outputs: Sequence[Any] = ()) -> None:
        """End the call, and those in it that an exception left open."""
        while call in calls and (left := calls.pop()) is not call:
            self._settle(left, ())
        self._settle(call, outputs)

    def _settle(self, call: Call, outputs: Sequence[Any]) -> None:
        self._scope.ends(call.forward)
        if call.watch is not None and call.input_watch is not None:
            call.watch.restore()
            call.input_watch.settle(outputs)
        call.watch = call.input_watch = call.handled = None

    def _record_output(self, call: Call, output: Any, parameters: Parameters) -> None:
        save = self._saves(call.forward)
        build = self._leaves.build
        fields = call.inputs
        if self._fields.keeps(FORWARD, "output"):
            scratch = call.subject.scratch
            results = ((index, None if index in scratch else value) for index, value in enumerate(_results(output)))
            leaves = [build(value, call.forward, "output", (str(index),), save) for index, value in results]
            fields.append(("output", field_text("output", leaves)))
        if call.subject.is_module and self._fields.keeps(FORWARD, "parameters"):
            named = {name: build(value, call.forward, "parameters", (name,), save) for name, value in parameters()}
            if named:
                fields.append(("parameters", field_text("parameters", named)))
        if call.recomputed:
            fields.append((RECOMPUTE, field_text(RECOMPUTE, True)))
        self._store.entry(call.forward, fields, call.parent_entry(FORWARD), call.site)
        call.inputs = []

    def _plan_output(self, call: Call, output: Any) -> Watch:
        watch = self._new_watch(parameters=False)
        if call.keep_backward and (self._framework.watches_in_place or not call.subject.writes_in_place):
            call.output_fields = watch.plan(_results(output))
        return watch

    # -- backward --------------------------------------------------------------------------------------------------

    def _output_gradients(self, call: Call, gradients: Sequence[Any]) -> None:
        """Backward of the call begins. Its record is on disk at once; the input gradients are added when they come.

        Gradients of further outputs may come later, with those that came before.
        """
        self._from_backward(call.backward, lambda: self._backward_begins(call, gradients))

    def _begin_backward(self, call: Call) -> bool:
        """Whether this is the first gradient that came to the call, or out of it."""
        self.saw_backward = True
        first, call.backward_begun = not call.backward_begun, True
        if first:
            call.keep_backward = self._scope.begins(call.backward) and self._records_backward(call)
        return first

    def _backward_begins(self, call: Call, gradients: Sequence[Any]) -> None:
        first = self._begin_backward(call)
        more = any(plan is not None for plan in call.plan)
        if call.keep_backward:
            fields = self._gradient_field(call, "input", call.output_fields, gradients)
            if first:
                fields += self._gradient_field(call, "output", call.plan, ())
            self._store.entry(call.backward, fields, call.parent_entry(BACKWARD), complete=not more)
        if not more:
            self._scope.ends(call.backward)

    def _input_gradients(self, call: Call, gradients: Sequence[Any]) -> None:
        self._from_backward(call.backward, lambda: self._backward_ends(call, gradients))

    def _backward_ends(self, call: Call, gradients: Sequence[Any]) -> None:
        self._begin_backward(call)
        if call.keep_backward:
            fields = self._gradient_field(call, "output", call.plan, gradients)
            self._store.entry(call.backward, fields, call.parent_entry(BACKWARD))
        self._scope.ends(call.backward)

    def _gradient_field(
        self, call: Call, field: str, plan: Sequence[Plan], gradients: Sequence[Any]
    ) -> list[tuple[str, str]]:
        if not self._fields.keeps(BACKWARD, field):
            return []
        save = self._saves(call.backward)

        def leaf(position: int, path: tuple[str, ...]) -> Value:
            gradient = gradients[position] if position < len(gradients) else None
            return self._leaves.build(gradient, call.backward, field, path, save)

        return [(field, field_text(field, fill(plan, leaf)))]

    def parameter_gradient(self, base: str, name: str, gradient: Any) -> None:
        """Record a parameter's accumulated gradient; ``base`` is its module's, ``Cell.fc1.Dense``."""

        def record() -> None:
            self.saw_backward = True
            if self._late is not None:
                if (base, name) in self._late:
                    return
                self._late.add((base, name))
            entry = f"{base}.{PARAMETERS_GRAD}.{self._count(f'{base}.{PARAMETERS_GRAD}.{name}')}"
            listed = (self._list.accepts(entry) or base in self._opened) and self._skip.took(base)
            if listed and self._fields.keeps(BACKWARD, PARAMETERS_GRAD) and self._scope.is_open:
                leaf = self._leaves.build(gradient, entry, "", (name,), self._saves(entry))
                self._store.entry(entry, [(name, field_text(name, [leaf]))])

        self._from_backward(f"{base}.{PARAMETERS_GRAD}", record)

    def _from_backward(self, where: str, action: Callable[[], None]) -> None:
        if not self._is_open():
            return
        thread = self._thread
        was_busy, thread.busy = thread.busy, True
        try:
            with self._framework.quiet():
                action()
        except Exception as error:
            self._trouble.report(error, where)
        finally:
            thread.busy = was_busy

    def _saves(self, entry: str) -> bool:
        return self._save_all or (self._save_some is not None and self._save_some.accepts(entry))


def _results(output: Any) -> Sequence[Any]:
    """The results of a call: the members of a list or tuple, or the one value that it returned."""
    return output if isinstance(output, (list, tuple)) and not hasattr(output, "_fields") else (output,)
