"""Record gradients on their way back: the backward entries of calls, and the gradients of parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from msprobe_ms.dump.names import BACKWARD, PARAMETERS_GRAD
from msprobe_ms.dump.writing.json_text import Value
from msprobe_ms.dump.writing.writer import EntryPart
from msprobe_ms.recording.calls import Call
from msprobe_ms.recording.gradient_watch import Plan, fill
from msprobe_ms.recording.output.entry_sink import EntrySink
from msprobe_ms.recording.output.values import ValueSerializer
from msprobe_ms.recording.selection.call_filter import CallFilter


class Backward:
    """Records what comes back to the calls of one step."""

    def __init__(
        self,
        sink: EntrySink,
        values: ValueSerializer,
        call_filter: CallFilter,
        guarded: Callable[[str, Callable[[], None]], None],
        is_open: Callable[[], bool],
        count: Callable[[str], int],
    ) -> None:
        """``guarded`` records without letting errors out, ``is_open`` says whether the step still takes records,
        ``count`` numbers the entries of one name."""
        self._sink = sink
        self._values = values
        self._filter = call_filter
        self._guarded = guarded
        self._is_open = is_open
        self._count = count
        #: Whether any gradient has come back since `resume`; hooks on parameters may go once it has.
        self.seen = False
        #: Parameters whose gradient came after `pause`: only the first belongs to what was recorded.
        self._late: set[tuple[str, str]] | None = None

    def resume(self) -> None:
        """Calls are made from here on."""
        self.seen = False
        self._late = None

    def pause(self) -> None:
        """No more calls until `resume`."""
        self._late = set()

    def output_gradients(self, call: Call, gradients: Sequence[Any]) -> None:
        """Backward of the call begins. Its record goes on at once; the input gradients are added when they come.

        Gradients of further outputs may come later; those that came before are known by their leaves.
        """
        self._record(call.backward, partial(self._call_begins, call, gradients))

    def input_gradients(self, call: Call, gradients: Sequence[Any] | None) -> None:
        """What the call's backward made of them; None where a part has come, and the rest may or may not."""
        if gradients is None:
            self._record(call.backward, partial(self._part_came, call))
        else:
            self._record(call.backward, partial(self._call_ends, call, gradients))

    def _begin(self, call: Call) -> bool:
        """Whether this is the first gradient that came to the call, or out of it."""
        self.seen = True
        first, call.backward_begun = not call.backward_begun, True
        if first:
            self._filter.backward_begins(call)
        return first

    def _call_begins(self, call: Call, gradients: Sequence[Any]) -> None:
        first = self._begin(call)
        more = any(plan is not None for plan in call.plan)
        if call.keep_backward:
            fields = self._field(call, "input", call.output_fields, gradients, call.output_leaves)
            if first:
                fields += self._field(call, "output", call.plan, ())
            self._sink.entry(EntryPart(call.backward, fields, call.parent_entry(BACKWARD), complete=not more))
        if not more:
            self._filter.ends(call.backward)

    def _part_came(self, call: Call) -> None:
        """Take note of the time: where a branch takes no part in this backward, nobody says that this was the last."""
        self._begin(call)
        call.came_in_parts = True
        if call.keep_backward:
            self._sink.entry(EntryPart(call.backward, (), call.parent_entry(BACKWARD), complete=False))

    def _call_ends(self, call: Call, gradients: Sequence[Any]) -> None:
        self._begin(call)
        if call.keep_backward:
            fields = self._field(call, "output", call.plan, gradients)
            self._sink.entry(EntryPart(call.backward, fields, call.parent_entry(BACKWARD), stays=call.came_in_parts))
        self._filter.ends(call.backward)

    def _field(
        self,
        call: Call,
        field: str,
        plan: Sequence[Plan],
        gradients: Sequence[Any],
        known: dict[tuple[str, ...], Value] | None = None,
    ) -> list[tuple[str, Value]]:
        """``known``: leaves of gradients that came before, by their path; these are added, or begin another pass."""
        if not self._filter.keeps(BACKWARD, field):
            return []
        save = self._filter.saves(call.backward)
        leaves, new = {} if known is None else known, dict[tuple[str, ...], Value]()

        def read(position: int, path: tuple[str, ...]) -> None:
            gradient = gradients[position] if position < len(gradients) else None
            if gradient is not None:
                new[path] = self._values.build(gradient, call.backward, field, path, save)

        fill(plan, read)
        if new.keys() & leaves.keys():
            leaves.clear()
        leaves |= new
        return [(field, fill(plan, lambda _, path: leaves.get(path)))]

    def parameter(self, base: str, name: str, gradient: Any) -> None:
        """Record a parameter's accumulated gradient; ``base`` is its module's, ``Cell.fc1.Dense``."""
        self._record(f"{base}.{PARAMETERS_GRAD}", partial(self._parameter, base, name, gradient))

    def _parameter(self, base: str, name: str, gradient: Any) -> None:
        self.seen = True
        if self._late is not None:
            if (base, name) in self._late:
                return
            self._late.add((base, name))
        entry = f"{base}.{PARAMETERS_GRAD}.{self._count(f'{base}.{PARAMETERS_GRAD}.{name}')}"
        if self._filter.parameter(entry, base):
            leaf = self._values.build(gradient, entry, "", (name,), self._filter.saves(entry))
            self._sink.entry(EntryPart(entry, [(name, [leaf])]))

    def _record(self, where: str, action: Callable[[], None]) -> None:
        if self._is_open():
            self._guarded(where, action)
