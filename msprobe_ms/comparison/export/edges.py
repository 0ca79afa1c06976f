"""What flows between the calls of a dump: which output became which input, found by equal figures.

A dump does not record it. Where code that was not recorded stands between two calls, as an addition does at level L0,
nothing flows from one to the other as far as is known: the later one then follows those before it, in the same module,
of whose results it is not known where they went.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msprobe_ms.comparison.export.tree import Node
from msprobe_ms.comparison.fingerprints import Fingerprint, fingerprint_of
from msprobe_ms.dump.dialects import API_PREFIXES
from msprobe_ms.dump.model import Entry, Item
from msprobe_ms.dump.names import BACKWARD, DEBUG, FORWARD, PARAMETERS_GRAD

_GIVEN = ("output", "parameters_grad")
_TAKEN = ("input", "debug")
#: Stands for an output or an input that is not known.
UNKNOWN = -1
#: Of the calls that one follows because another with the same input does, so many at most: edges stay linear.
_MOST_SHARED = 8


class Edge(NamedTuple):
    """What goes from the node ``source`` to the node ``target``.

    ``output``, ``input``  places among what the one gave out, or what the other took in; ``UNKNOWN`` for both where
                           the target only follows the source, and ``UNKNOWN`` for the input of what a call hands out
                           that was made inside of it
    """

    source: int
    target: int
    output: int
    input: int

    @property
    def is_known(self) -> bool:
        """Whether a tensor was found again, and it is not only that one follows the other."""
        return self.output != UNKNOWN


def taken_by(entry: Entry) -> list[Item]:
    """Return what a call took in, in the order that edges count."""
    return [item for item in entry.items if item.state in _TAKEN]


def given_by(entry: Entry) -> list[Item]:
    """Return what a call gave out, in the order that edges count."""
    return [item for item in entry.items if item.state in _GIVEN]


def edges_of(nodes: Sequence[Node]) -> list[Edge]:
    """Return the edges between the nodes of a dump, by their targets.

    Each leads from an earlier call to a later one, but for those to the gradients of parameters.

    A call gets its inputs from outside: from the last that gave them out before anything inside of it ended. Where a
    call inside of it takes them in, that one gets the edge. What it gives out comes from the last that made it inside.
    """
    return list(_Flow([node.entry for node in nodes if node.entry is not None], nodes).edges())


class _Flow:
    def __init__(self, entries: Sequence[Entry], nodes: Sequence[Node]) -> None:
        self._entries = entries
        self._taken = [list(map(fingerprint_of, taken_by(entry))) for entry in entries]
        self._given = [list(map(fingerprint_of, given_by(entry))) for entry in entries]
        #: Fingerprint → the calls that gave it out, and where in them; the calls that took it in.
        self._made: dict[Fingerprint, list[tuple[int, int]]] = defaultdict(list)
        self._used: dict[Fingerprint, list[int]] = defaultdict(list)
        for number, (taken, given) in enumerate(zip(self._taken, self._given, strict=True)):
            for place, tensor in enumerate(given):
                if tensor is not None:
                    self._made[tensor].append((number, place))
            for tensor in taken:
                if tensor is not None:
                    self._used[tensor].append(number)
        self._around = _calls_around(nodes, len(entries))
        self._begins = _begins(self._around)
        self._backward = {
            entry.name: number
            for number, entry in enumerate(entries)
            if entry.parsed is not None and entry.parsed.direction == BACKWARD
        }

    def edges(self) -> Iterator[Edge]:
        known = [[*self._from_outside(number), *self._from_inside(number)] for number in range(len(self._entries))]
        lost = _Lost(self._around, self._taken)
        taken_on = {edge.source for edges in known for edge in edges}
        for number, (entry, edges) in enumerate(zip(self._entries, known, strict=True)):
            yield from edges
            is_call = _is_call(entry)
            sources: Sequence[int] = ()
            if not edges and not is_call:
                sources = self._made_before(entry, lost.before)
            elif not edges and self._takes_something(number):
                sources = lost.sources(number)
            yield from (Edge(source, number, UNKNOWN, UNKNOWN) for source in sources)
            if is_call:
                lost.end(number, kept=number not in taken_on and self._gives_something(number))

    def _takes_something(self, number: int) -> bool:
        """Whether it computes on tensors, as far as is known: what takes in plain values alone makes new ones."""
        taken = taken_by(self._entries[number])
        return not taken or any(item.kind == "tensor" for item in taken) or self._begins[number] < number

    def _gives_something(self, number: int) -> bool:
        """Whether it gives out a tensor, as far as is known: a shape or a rank goes nowhere."""
        given = given_by(self._entries[number])
        return not given or any(item.kind == "tensor" for item in given)

    def _from_outside(self, number: int) -> Iterator[Edge]:
        begin = self._begins[number]
        for place, tensor in enumerate(self._taken[number]):
            if tensor is None:
                continue
            made, used = self._made.get(tensor, ()), self._used[tensor]
            last = bisect_left(made, (begin,)) - 1
            if last >= 0 and used[bisect_left(used, begin)] >= number:
                yield Edge(made[last][0], number, made[last][1], place)

    def _from_inside(self, number: int) -> Iterator[Edge]:
        begin = self._begins[number]
        for tensor in self._given[number] if begin < number else ():
            if tensor is None:
                continue
            made = self._made[tensor]
            last = bisect_left(made, (number,)) - 1
            if last >= 0 and made[last][0] >= begin:
                yield Edge(made[last][0], number, made[last][1], UNKNOWN)

    def _made_before(self, entry: Entry, before: int | None) -> list[int]:
        """What an entry that is no call comes from: gradients of parameters from their backward call, what the script
        saved from the last call before."""
        direction = entry.parsed.direction if entry.parsed is not None else ""
        if entry.parsed is not None and direction == PARAMETERS_GRAD:
            made = self._backward.get(str(entry.parsed.in_direction(BACKWARD)))
        else:
            made = before if direction == DEBUG else None
        return [] if made is None else [made]


class _Lost:
    """Results of which it is not known where they went, for the inputs of which it is not known where they came from.

    ``before``  the call that ended last
    """

    def __init__(self, around: Sequence[int | None], taken: Sequence[Sequence[Fingerprint | None]]) -> None:
        self._around = around
        self._taken = [{tensor: None for tensor in tensors if tensor is not None} for tensors in taken]
        #: Calls by what encloses them.
        self._pending: dict[int | None, list[int]] = defaultdict(list)
        #: Where a tensor was taken to come from: all that take it in got it from there.
        self._known: dict[Fingerprint, Sequence[int]] = {}
        self.before: int | None = None

    def sources(self, number: int) -> Sequence[int]:
        """The calls that a call follows: those left inside of it, else those left where its inputs came in."""
        if inside := self._pending.pop(number, None):
            return inside
        tensors = self._taken[number]
        for tensor in tensors:
            if tensor in self._known:
                return self._known[tensor]
        around = self._around[number]
        while around is not None and not tensors.keys().isdisjoint(self._taken[around]):
            around = self._around[around]
        left = self._pending.pop(around, [])
        sources = left or ([] if self.before is None else [self.before])
        self._known.update(dict.fromkeys(tensors, sources[-_MOST_SHARED:]))
        return sources

    def end(self, number: int, *, kept: bool) -> None:
        """A call has ended; ``kept``: it is not known where its results go."""
        self.before = number
        if kept:
            self._pending[self._around[number]].append(number)


def _is_call(entry: Entry) -> bool:
    """Whether an entry is a call of a module or an API, and no saved value, gradient or parameter."""
    parsed = entry.parsed
    if parsed is None:
        return False
    return parsed.direction in (FORWARD, BACKWARD) and (parsed.is_module or parsed.prefix in API_PREFIXES)


def _calls_around(nodes: Sequence[Node], calls: int) -> list[int | None]:
    """The call that encloses each call, whatever groups lie between; None where none does."""
    around: list[int | None] = []
    for number in range(calls):
        parent = nodes[number].parent
        while parent is not None and nodes[parent].entry is None:
            parent = nodes[parent].parent
        around.append(parent)
    return around


def _begins(around: Sequence[int | None]) -> list[int]:
    """The first call to end inside of each call; its own number where nothing was called in it."""
    begins = list(range(len(around)))
    for number, parent in enumerate(around):
        if parent is not None:
            begins[parent] = min(begins[parent], begins[number])
    return begins
