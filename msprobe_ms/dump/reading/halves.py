"""Join the two halves of one step, what ran in compiled graphs and what ran outside of them, into one dump.

Neither half tells when the other ran; names and values do. The call of a compiled module is in both, seen from inside
and from outside. What a graph takes in was given out before it, what it gives out is taken in after it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from msprobe_ms.dump.columns import ItemSlice
from msprobe_ms.dump.dialects import JIT
from msprobe_ms.dump.model import Dump, Entry, Item, Tensors, ancestors
from msprobe_ms.dump.names import BACKWARD, FORWARD, PARAMETERS_GRAD, is_update
from msprobe_ms.support.translation import tr_join

#: What tells one tensor of a step from another: its shape with its checksum, or with its statistics.
_Value = tuple[object, ...]
#: What calls are numbered by: prefix, name and class, and whether they are gradients of parameters.
_Numbered = tuple[str, str, str, bool]
_BACKWARDS = (BACKWARD, PARAMETERS_GRAD)


def join_halves(outside: Dump, graph: Dump) -> Dump:
    """Return the dump of a step: the entries of both halves, in the order in which they ran as far as that is known.

    A call that both halves hold, of a compiled module, is told as it was seen from outside. Where a module ran in the
    graph and outside of it, its calls are numbered anew, in the order in which they ran. Entries are changed in place.
    """
    same = _seen_twice(outside.entries, graph.entries)
    inside = {name: entry for name, entry in graph.entries.items() if name not in same}
    order = _Order(outside.entries, graph.entries, same)
    merged = list(order.merged())
    around = {
        **{id(entry): outside.entries.get(entry.parent or "") for entry in outside.entries.values()},
        **{id(entry): inside.get(entry.parent or "") or order.caller(entry) for entry in inside.values()},
    }
    _number(merged, set(map(id, inside.values())), graph.entries, same)
    for entry in merged:
        if (parent := around[id(entry)]) is not None:
            entry.parent = parent.name
    return replace(
        outside,
        entries={entry.name: entry for entry in merged},
        tensors=_TensorsOfHalves(outside.tensors, graph.tensors, {entry.name for entry in inside.values()}),
        extra={**graph.extra, **outside.extra},
        damage=tr_join("; ", [each.damage for each in (outside, graph) if each.damage]),
    )


class _TensorsOfHalves:
    """Loads each tensor from the half that holds it."""

    def __init__(self, outside: Tensors, graph: Tensors, inside: set[str]) -> None:
        self._outside, self._graph, self._inside = outside, graph, inside

    def _of(self, item: Item) -> Tensors:
        return self._graph if item.entry in self._inside else self._outside

    def load(self, item: Item) -> np.ndarray:
        return self._of(item).load(item)

    def where(self, item: Item) -> str:
        return self._of(item).where(item)


# -- calls that both halves hold ---------------------------------------------------------------------------------------


def _seen_twice(outside: Mapping[str, Entry], graph: Mapping[str, Entry]) -> dict[str, Entry]:
    """Entries of the graph → those outside that are of the same call, of a module that is compiled itself.

    A module that is called in a graph may be called outside of it as well: then results tell which call is which.
    """
    found: dict[str, Entry] = {}
    taken: set[str] = set()
    by_module: dict[_Numbered | None, list[Entry]] = defaultdict(list)
    for entry in outside.values():
        by_module[_numbered(entry)].append(entry)
    for direction in (FORWARD, BACKWARD):
        for name, entry in graph.items():
            parsed = entry.parsed
            if parsed is None or parsed.direction != direction or not parsed.is_module or entry.parent in graph:
                continue
            forward = found.get(str(parsed.in_direction(FORWARD)))
            if forward is not None and forward.parsed is not None:  # known by its results
                other = outside.get(str(forward.parsed.in_direction(direction)))
            else:
                calls = (each for each in by_module[_numbered(entry)] if each.name not in taken)
                other = next((each for each in calls if _is_same_call(entry, each)), None)
            if other is not None:
                found[name] = other
                taken.add(other.name)
    return found


def _numbered(entry: Entry) -> _Numbered | None:
    parsed = entry.parsed
    if parsed is None:
        return None
    return parsed.prefix, parsed.name, parsed.class_name, parsed.direction == PARAMETERS_GRAD


def _is_same_call(inside: Entry, outside: Entry) -> bool:
    """Whether what it gave out, or the gradient of that, has the same values; where none is known, by its number."""
    ours, theirs = inside.parsed, outside.parsed
    if ours is None or theirs is None or ours.direction != theirs.direction:
        return False
    state = "output" if ours.direction == FORWARD else "input"
    known = {item.path: _value(item) for item in outside.items if item.state == state}
    both = [(_value(item), known.get(item.path)) for item in inside.items if item.state == state]
    values = [mine == other for mine, other in both if mine is not None and other is not None]
    return all(values) if values else ours.index == theirs.index


def _value(item: Item) -> _Value | None:
    """What a tensor is known again by; None for other items, and where all elements are one, as of many tensors."""
    if item.kind != "tensor":
        return None
    if item.md5 is not None:
        return item.shape, item.md5
    if item.norm is None or item.maximum == item.minimum:
        return None
    return item.shape, item.maximum, item.minimum, item.mean, item.norm


# -- in which order ----------------------------------------------------------------------------------------------------


class _Order:
    """Finds for each outermost call of a graph where it ran: before which of the entries outside, and in which."""

    def __init__(self, outside: Mapping[str, Entry], graph: Mapping[str, Entry], same: Mapping[str, Entry]) -> None:
        self._outside, self._graph, self._same = list(outside.values()), graph, same
        #: Where values are given out and taken in first, and all places where compiled functions take or give them.
        self._given: dict[_Value, int] = {}
        self._taken: dict[_Value, int] = {}
        self._compiled: dict[tuple[str, _Value], list[int]] = defaultdict(list)
        #: Where calls ended; of a call with calls in it, where the first of them did.
        self._begun: dict[str, int] = {}
        for place, entry in enumerate(self._outside):
            compiled = entry.parsed is not None and entry.parsed.prefix == JIT
            for item in entry.items:
                if item.state not in ("input", "output") or (value := _value(item)) is None:
                    continue
                (self._given if item.state == "output" else self._taken).setdefault(value, place)
                if compiled:
                    self._compiled[item.state, value].append(place)
            for name in (entry.name, *ancestors(outside, entry.name)):
                self._begun.setdefault(name, place)
        self._ends = _ends(self._outside)
        self._places: dict[str, int] = {}

    def merged(self) -> Iterator[Entry]:
        """Yield all entries; of what both halves hold, the one outside."""
        inside: dict[int, list[Entry]] = defaultdict(list)
        last = 0
        for name, entry in self._graph.items():
            outermost = ([name, *(each for each in ancestors(self._graph, name) if each in self._graph)])[-1]
            if outermost not in self._places:
                self._places[outermost] = last = self._place(self._graph[outermost], last)
            if name not in self._same:
                inside[self._places[outermost]].append(entry)
        for place, entry in enumerate(self._outside):
            yield from (*inside[place], entry)
        yield from inside[len(self._outside)]

    def _place(self, call: Entry, last: int) -> int:
        """The place of a graph's outermost call, which is not before that of the one before it."""
        if (other := self._same.get(call.name)) is not None:
            return max(last, self._begun[other.name])
        values = [(item.state, value) for item in call.items if (value := _value(item)) is not None]
        compiled = [place for each in values for place in self._compiled.get(each, ()) if place >= last]
        if compiled:  # it ended when its graph had run
            return min(compiled)
        after = [self._given[value] + 1 for state, value in values if state == "input" and value in self._given]
        if after:
            return max(last, *after)
        before = [self._taken[value] for state, value in values if state == "output" and value in self._taken]
        direction = "" if call.parsed is None else call.parsed.direction
        if direction in _BACKWARDS:
            before += self._gradients_of(call)
        if later := [place for place in before if place >= last]:
            return min(later)
        return self._first(_is_after_forward, last) if direction in _BACKWARDS else last

    def _gradients_of(self, call: Entry) -> Iterator[int]:
        """Where gradients of parameters of the module, and of those in it, are told."""
        path = "" if call.parsed is None else call.parsed.name
        for name, direction in self._ends:
            if direction == PARAMETERS_GRAD and (not path or name == path or name.startswith(f"{path}.")):
                yield from self._ends[name, direction]

    def _first(self, test: Callable[[Entry], bool], last: int) -> int:
        places = (place for place in range(last, len(self._outside)) if test(self._outside[place]))
        return next(places, len(self._outside))

    def caller(self, entry: Entry) -> Entry | None:
        """The call outside that a graph's call was made in, if no other of the graph is: of a compiled function, which
        ends right after, of the module that is compiled, or by the path of the call: the first to end afterwards."""
        name = entry.parent if entry.parent in self._same else entry.name
        place, call = self._places.get(name or ""), self._same.get(name or "")
        if place is None or entry.parsed is None or not entry.parsed.is_module:
            return None
        function = self._outside[place].parsed if place < len(self._outside) else None
        if function is not None and (function.prefix, function.direction) == (JIT, entry.parsed.direction):
            return self._outside[place]
        if call is not None:
            return call
        path = entry.parsed.name
        while path:
            path = path.rpartition(".")[0]
            ends = self._ends.get((path, entry.parsed.direction), ())
            if (number := bisect_left(ends, place)) < len(ends):
                return self._outside[ends[number]]
        return None


def _ends(entries: Sequence[Entry]) -> dict[tuple[str, str], list[int]]:
    """Where calls of modules end, by path and direction."""
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, entry in enumerate(entries):
        if entry.parsed is not None and entry.parsed.is_module:
            found[entry.parsed.name, entry.parsed.direction].append(place)
    return found


def _is_after_forward(entry: Entry) -> bool:
    return entry.parsed is not None and (entry.parsed.direction in _BACKWARDS or is_update(entry.parsed))


# -- under which names -------------------------------------------------------------------------------------------------


def _number(merged: Sequence[Entry], inside: set[int], graph: Mapping[str, Entry], same: Mapping[str, Entry]) -> None:
    """Number the calls of modules that ran in the graph and outside of it, each in its own way, in their order.

    ``inside``: the identities of the entries that are the graph's.
    """
    known = {
        (_numbered(graph[name]), graph[name].parsed.index): other.parsed.index  # type: ignore[union-attr]
        for name, other in same.items()
    }
    calls: dict[_Numbered, list[tuple[Entry, tuple[bool, int | None]]]] = defaultdict(list)
    for entry in merged:
        if (kind := _numbered(entry)) is not None and entry.parsed is not None:
            number, ours = entry.parsed.index, id(entry) in inside
            if ours and (kind, number) in known:
                ours, number = False, known[kind, number]
            calls[kind].append((entry, (ours, number)))
    for some in calls.values():
        if len({ours for _, (ours, _) in some}) < 2 and not any(id(entry) in inside for entry, _ in some):
            continue
        forward_first = sorted(some, key=lambda each: each[0].parsed.direction != FORWARD)  # type: ignore[union-attr]
        numbers = {call: number for number, call in enumerate(dict.fromkeys(call for _, call in forward_first))}
        mixed = len({ours for ours, _ in numbers}) > 1
        for entry, call in some:
            _rename(entry, numbers[call] if mixed else call[1])


def _rename(entry: Entry, number: int | None) -> None:
    """Give an entry, and its items, another number."""
    assert entry.parsed is not None
    if entry.parsed.index == number:
        return
    entry.parsed = replace(entry.parsed, index=number)
    entry.name = str(entry.parsed)
    if isinstance(entry.items, ItemSlice) and len(entry.items):
        entry.items.table.rename(entry.items.start, entry.name)
