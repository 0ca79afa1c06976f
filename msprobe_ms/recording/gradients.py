"""Record gradients on their way back: watches on the tensors of a call, backward entries, gradients of parameters.

Containers keep their shape in the record (``output.1.0`` is the gradient of ``input.1.0``), values that are no tensors
are left out, tensors no gradient flows through are null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msprobe_ms.dump.names import BACKWARD, PARAMETERS_GRAD
from msprobe_ms.dump.writing.json_text import Value
from msprobe_ms.dump.writing.writer import EntryPart
from msprobe_ms.recording.calls import Call
from msprobe_ms.recording.containers import MOST_MEMBERS, PLAIN, Members, Walk, members, put
from msprobe_ms.recording.output.values import ValueSerializer
from msprobe_ms.recording.selection.filters import CallFilter

if TYPE_CHECKING:
    from msprobe_ms.recording.output.step_dump import EntrySink


#: A plan: lists and dictionaries of positions in the watched tensors; None for a tensor that is not watched.
Plan = int | None | list["Plan"] | dict[str, "Plan"]

#: Types of what is in a plan of tensors alone.
_PLACES = frozenset((int, type(None)))

#: Marks what takes no part in a plan.
_SKIP: Any = object()


class _Planning(Walk):
    """Makes a plan of nested values; ``position`` gives that of a tensor."""

    def __init__(self, is_tensor: Callable[[Any], bool], position: Callable[[Any], int | None]) -> None:
        super().__init__(is_tensor)
        self._position = position

    def tensor(self, value: Any) -> int | None:
        return self._position(value)

    def plain(self, value: Any) -> Any:
        return _SKIP

    nothing = plain

    def made(self, value: Any, inside: Members, found: list[Any]) -> Any:
        if (names := inside[0]) is None:
            return [plan for plan in found if plan is not _SKIP] or _SKIP
        return {name: plan for name, plan in zip(names, found, strict=False) if plan is not _SKIP} or _SKIP


class _Exchange(Walk):
    """Puts other tensors in the place of some; ``written`` are the containers that it wrote into."""

    def __init__(self, is_tensor: Callable[[Any], bool], others: Mapping[int, Any]) -> None:
        """``others``: by the id of a tensor what to put in its place."""
        super().__init__(is_tensor)
        self._others = others
        self.written: list[Any] = []

    def tensor(self, value: Any) -> Any:
        return self._others.get(id(value), value)

    def plain(self, value: Any) -> Any:
        return value

    nothing = plain

    def made(self, value: Any, inside: Members, found: list[Any]) -> Any:
        pairs = enumerate(zip(inside[1], found, strict=False))
        others = {place: new for place, (old, new) in pairs if new is not old}
        other = put(value, others) if others else value
        if others and other is value:
            self.written.append(value)
        return other


#: Sequences whose members are read as they are.
_BUILT_IN = frozenset((list, tuple))

_NONE: Mapping[int, Any] = {}


class Watch:
    """Finds the tensors worth watching in nested values, swaps them, and undoes what it did to mutable containers."""

    def __init__(self, is_tensor: Callable[[Any], bool], can_watch: Callable[[Any], bool]) -> None:
        self._is_tensor = is_tensor
        self._can_watch = can_watch
        #: The watched tensors, in the order their gradients will come in; one given twice is watched once.
        self.tensors: list[Any] = []
        self._positions: dict[int, int] = {}
        #: The containers written into, and by a replacement's id the tensor it stands for.
        self._written: Sequence[Any] = ()
        self._originals: Mapping[int, Any] = _NONE

    def plan(self, values: Sequence[Any]) -> list[Plan]:
        """Walk a list or tuple of values and remember the tensors to watch."""
        planning, found = None, list[Plan]()
        if type(values) not in _BUILT_IN or len(values) > MOST_MEMBERS:
            inside = members(values)
            values = () if inside is None else inside[1]
        is_tensor, position = self._is_tensor, self._position
        for value in values:
            if type(value) in PLAIN:
                continue
            if is_tensor(value):  # as most are, for which nothing is walked
                found.append(position(value))
                continue
            planning = planning or _Planning(is_tensor, position)
            if (plan := planning.of(value)) is not _SKIP:
                found.append(plan)
        return found

    def _position(self, tensor: Any) -> int | None:
        """The place of a tensor among those that are watched; None for one that is not."""
        if not self._can_watch(tensor):
            return None
        tensors = self.tensors
        position = self._positions.setdefault(id(tensor), len(tensors))
        if position == len(tensors):
            tensors.append(tensor)
        return position

    def swap(self, values: Sequence[Any], replacements: Sequence[Any]) -> Sequence[Any]:
        """The list or tuple ``values`` with each watched tensor replaced.

        Tuples are rebuilt; lists, dictionaries and dataclass instances are written into, because the call may keep
        or change them, until ``restore`` puts the originals back.
        """
        if replacements is self.tensors:
            return values
        pairs = [(old, new) for old, new in zip(self.tensors, replacements, strict=True) if new is not old]
        if not pairs:
            return values
        self._originals = {id(new): old for old, new in pairs}
        exchange = _Exchange(self._is_tensor, {id(old): new for old, new in pairs})
        swapped: Sequence[Any] = exchange.of(tuple(values))
        self._written = exchange.written
        return swapped

    def restore(self) -> None:
        """Put the caller's tensors back into its lists and dictionaries, wherever the call left the replacements."""
        written, self._written = self._written, ()
        for container in written:
            _Exchange(self._is_tensor, self._originals).of(container)


def fill(plans: Sequence[Plan], make: Callable[[int, tuple[str, ...]], Any]) -> list[Any]:
    """The plans with ``make(position, path)`` in place of each watched tensor."""
    return [_fill(plan, (str(index),), make) for index, plan in enumerate(plans)]


def _fill(plan: Plan, path: tuple[str, ...], make: Callable[[int, tuple[str, ...]], Any]) -> Any:
    if plan is None:
        return None
    if isinstance(plan, int):
        return make(plan, path)
    if isinstance(plan, list):
        return [_fill(member, (*path, str(index)), make) for index, member in enumerate(plan)]
    return {key: _fill(member, (*path, key), make) for key, member in plan.items()}


class Backward:
    """Records what comes back to the calls of one step."""

    def __init__(
        self,
        sink: EntrySink,
        values: ValueSerializer,
        call_filter: CallFilter,
        recorded: Callable[..., None],
        count: Callable[[str], int],
    ) -> None:
        """``recorded`` calls a function with what follows it while the step takes records, and lets no errors out;
        ``count`` numbers the entries of one name."""
        self._sink = sink
        self._values = values
        self._filter = call_filter
        self._recorded = recorded
        self._count = count
        # The same for all calls of a step.
        self._saves_files = call_filter.saves_files
        self._keeps = {field: call_filter.kept[BACKWARD, field] for field in ("input", "output")}
        #: Whether any gradient has come back since `resume`; hooks on parameters may go once it has.
        self.seen = False
        #: Parameters whose gradient came after `pause`: only the first belongs to what was recorded.
        self._late: set[tuple[str, str]] | None = None

    def resume(self) -> None:
        """Calls are made from here on."""
        self.seen = False
        self._late = None

    def pause(self) -> None:
        """No more calls until `resume`; may be repeated."""
        self._late = set() if self._late is None else self._late

    def close(self) -> None:
        """The step is over: its recorder is let go, and what comes later is dropped."""
        self._recorded = _drop

    def output_gradients(self, call: Call, gradients: Sequence[Any] | Exception) -> None:
        """Backward of the call begins. Its record goes on at once; the input gradients are added when they come.

        Gradients of further outputs may come later; those that came before are known by their leaves.
        """
        failed = isinstance(gradients, Exception)
        self._recorded(call.backward, _raise if failed else self._call_begins, call, gradients)

    def input_gradients(self, call: Call, gradients: Sequence[Any] | Exception | None) -> None:
        """What the call's backward made of them; None where a part has come, and the rest may or may not."""
        if gradients is None:
            self._recorded(call.backward, self._part_came, call)
        else:
            failed = isinstance(gradients, Exception)
            self._recorded(call.backward, _raise if failed else self._call_ends, call, gradients)

    def _begin(self, call: Call) -> bool:
        """Whether this is the first gradient that came to the call, or out of it."""
        self.seen = True
        first, call.backward_begun = not call.backward_begun, True
        if first:
            self._filter.backward_begins(call)
        return first

    def _call_begins(self, call: Call, gradients: Sequence[Any]) -> None:
        first = self._begin(call)
        more = call.plan.count(None) < len(call.plan)
        if call.keep_backward:
            fields = []
            if self._keeps["input"]:
                fields.append(("input", self._found(call, gradients)))
            if first and self._keeps["output"]:
                fields.append(("output", self._leaves(call, "output", call.plan, ())[0]))
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
            fields = []
            if self._keeps["output"]:
                fields.append(("output", self._leaves(call, "output", call.plan, gradients)[0]))
            self._sink.entry(EntryPart(call.backward, fields, call.parent_entry(BACKWARD), stays=call.came_in_parts))
        self._filter.ends(call.backward)

    def _found(self, call: Call, gradients: Sequence[Any]) -> list[Value]:
        """The leaves of gradients of results, with those that came before: they are added, or begin another pass."""
        found, new = self._leaves(call, "input", call.output_fields, gradients)
        known, call.output_leaves = call.output_leaves, new
        if known and not new.keys() & known.keys():
            leaves = call.output_leaves = known | new
            found = fill(call.output_fields, lambda _, path: leaves.get(path))
        return found

    def _leaves(
        self, call: Call, field: str, plan: Sequence[Plan], gradients: Sequence[Any]
    ) -> tuple[list[Value], dict[tuple[str, ...], Value]]:
        """The leaves of gradients in the places of the plan; and those of gradients that came, by their path."""
        save, came = self._saves_files and self._filter.saves(call.backward), len(gradients)
        new: dict[tuple[str, ...], Value] = {}
        if not save and _PLACES.issuperset(map(type, plan)):  # as most are, for which nothing is walked
            flat: Sequence[Any] = plan
            values = [None if place is None or place >= came else gradients[place] for place in flat]
            if (found := self._values.at_once(values, call.backward, field)) is not None:
                return found, {(str(i),): found[i] for i, value in enumerate(values) if value is not None}

        def read(position: int, path: tuple[str, ...]) -> Value:
            gradient = gradients[position] if position < came else None
            if gradient is None:
                return None
            leaf = new[path] = self._values.build(gradient, call.backward, field, path, save)
            return leaf

        return self._values.framework.quietly(fill, plan, read), new

    def parameter(self, base: str, name: str, gradient: Any) -> None:
        """Record a parameter's accumulated gradient; ``base`` is its module's, ``Cell.fc1.Dense``."""
        where = f"{base}.{PARAMETERS_GRAD}"
        if isinstance(gradient, Exception):
            self._recorded(where, _raise, None, gradient)
        else:
            self._recorded(where, self._parameter, base, where, name, gradient)

    def _parameter(self, base: str, where: str, name: str, gradient: Any) -> None:
        self.seen = True
        if self._late is not None:
            if (base, name) in self._late:
                return
            self._late.add((base, name))
        entry = f"{where}.{self._count(f'{where}.{name}')}"
        if self._filter.parameter(entry, base):
            save = self._saves_files and self._filter.saves(entry)
            leaves = None if save else self._values.at_once((gradient,), entry, "")
            if leaves is None:
                build = self._values.build
                leaves = [self._values.framework.quietly(build, gradient, entry, "", (name,), save)]
            self._sink.entry(EntryPart(entry, [(name, leaves)]))


def _drop(*_: Any) -> None:
    """What stands for the recording of gradients that come after the step."""


def _raise(call: Call | None, error: Exception) -> None:
    """What stands for the recording of gradients that could not be had."""
    raise error
