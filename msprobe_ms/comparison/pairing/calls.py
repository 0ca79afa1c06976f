"""Pair the API calls of one scope: a call of a module, or a step of which no modules are known.

K-th with k-th where both sides called equally often, unless values say otherwise (``values``): first those of one name,
or of one operation under several names; then several calls that are one of the other side's; then those of one family.
Where names differ, what they give out must have the same shape. Calls that take in and give out tensors of other sizes
are no counterparts where modules are known, whose own inputs and results tell of another size: of calls alone each is
told. Calls of which one side has more pair between the calls around them, where there it has not.

Several calls can be one of the other side: Dense is ``matmul`` and ``bias_add`` here, ``linear`` there. Such a group
stands beside its counterpart as a whole: what its calls take in and did not make themselves is what the counterpart
takes in, what they give out and do not use up themselves is what it gives out. What passes from one of them to the next
has no counterpart. In backward the same holds of the gradients, the calls in reverse.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Container, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product

from msprobe_ms.comparison.pairing.align import between, fixed_by_marks, longest_increasing
from msprobe_ms.comparison.pairing.operations import FAMILY, NAME, OPERATION, Call, Part, argument_order, tables
from msprobe_ms.comparison.pairing.values import are_of_other_sizes, in_order_of_values
from msprobe_ms.comparison.terms import PairedBy
from msprobe_ms.dump.model import Entry, Item
from msprobe_ms.dump.names import BACKWARD, FORWARD

#: Functions of ``(input, a, b, beta, alpha)`` that give out beta · input + alpha · a b.
_ADDING = frozenset({"addbmm", "addmm", "addmv", "addr", "baddbmm"})
#: Shapes of the first tensor taken in and of the first given out.
EndShapes = tuple[object, object]


@dataclass(frozen=True, slots=True)
class Found:
    """Entries of the target beside entries of the golden, one of the two alone; ``how`` "" when their names say so."""

    target: Sequence[Entry]
    golden: Sequence[Entry]
    how: PairedBy = PairedBy.NOTHING


@dataclass
class Scope:
    """One side of a scope: its calls without a counterpart, in execution order and of one direction.

    ``count``  how many calls it holds, those included that had a counterpart before
    ``free``   places of the calls that have no counterpart yet
    """

    calls: list[Call] = field(default_factory=list)
    count: int = 0
    free: set[int] = field(default_factory=set)

    def hold(self, entry: Entry, names: tuple[str, str, str] | None) -> None:
        """The next call; ``names`` None where it has a counterpart already."""
        if names is not None:
            self.calls.append(Call(entry, self.count, names))
            self.free.add(self.count)
        self.count += 1

    def left(self) -> list[Call]:
        return [call for call in self.calls if call.place in self.free]

    def by(self, key: Callable[[Call], Hashable]) -> dict[Hashable, list[Call]]:
        groups: dict[Hashable, list[Call]] = {}
        for call in self.left():
            groups.setdefault(key(call), []).append(call)
        return groups


def pair_calls(
    ours: Scope, theirs: Scope, *, groups: bool, whole_module: bool, other_sizes: bool = False
) -> list[Found]:
    """Pair the calls of one scope.

    ``groups``        several calls of one side may be one of the other
    ``whole_module``  so may all calls of the scope, which are all that one call of a module does
    ``other_sizes``   calls of tensors of other sizes may be counterparts
    """
    pairing = _Pairing(ours, theirs, other_sizes)
    pairing.zip(OPERATION, lambda calls, counterparts: _is_single(calls) and _names(calls) != _names(counterparts))
    pairing.zip(NAME)
    pairing.zip(OPERATION, lambda calls, counterparts: _is_single(calls))
    if groups:
        pairing.groups()
    pairing.zip(OPERATION)
    pairing.zip(FAMILY)
    pairing.between()
    if whole_module:
        pairing.whole()
    return pairing.found


class _Pairing:
    def __init__(self, ours: Scope, theirs: Scope, other_sizes: bool) -> None:
        self.ours, self.theirs, self.other_sizes = ours, theirs, other_sizes
        self.found: list[Found] = []
        #: Places of what was paired call by call.
        self.places: list[tuple[int, int]] = []

    def zip(self, width: int, when: Callable[[list[Call], list[Call]], bool] = lambda calls, others: True) -> None:
        """Calls of one word, where equally many, and of equal shapes where their names may differ."""
        others = self.theirs.by(lambda call: call.names[width])
        for word, calls in self.ours.by(lambda call: call.names[width]).items():
            counterparts = others.get(word, [])
            if len(calls) != len(counterparts) or not when(calls, counterparts):
                continue
            if width == NAME:
                calls, counterparts = _by_index(calls), _by_index(counterparts)
            counterparts = in_order_of_values(calls, counterparts)
            if width != NAME and [each.output_shape for each in calls] != [each.output_shape for each in counterparts]:
                continue
            for call, counterpart in zip(calls, counterparts, strict=True):
                if self.other_sizes or not are_of_other_sizes(call, counterpart):
                    self.take([call], [counterpart])

    def groups(self) -> None:
        for many, one in ((self.ours, self.theirs), (self.theirs, self.ours)):
            for operation, counterparts in one.by(lambda call: call.names[OPERATION]).items():
                parts = tables().groups.get(str(operation))
                for run, counterpart in find_groups(many.left(), parts, counterparts) if parts else ():
                    self.take(*(run, [counterpart]) if many is self.ours else ([counterpart], run))

    def between(self) -> None:
        """Calls of one operation and shape that stand between the same two pairs, where there are equally many.

        Calls with the same outputs, which no other call has, are such pairs as well: they show where a surplus call is.
        """
        ours, theirs = self.ours.left(), self.theirs.left()
        marks = ([(_kind(call), call.output_statistics) for call in calls] for calls in (ours, theirs))
        for place, other in fixed_by_marks(*marks):
            self.take([ours[place]], [theirs[other]])
        fixed = longest_increasing(sorted(self.places))
        by_place = {call.place: call for call in self.theirs.left()}
        others = self.theirs.by(_kind)
        for key, calls in self.ours.by(_kind).items():
            mine = {call.place: call for call in calls}
            for place, other in between(list(mine), [call.place for call in others.get(key, ())], fixed, even=True):
                self.take([mine[place]], [by_place[other]])

    def whole(self) -> None:
        """A module that is one call on one side: all its calls on the other, first to last."""
        for many, one in ((self.ours, self.theirs), (self.theirs, self.ours)):
            run, counterparts = many.left(), one.left()
            if len(counterparts) == one.count == 1 and len(run) == many.count > 0:
                shapes = end_shapes(counterparts[0].entry)
                if shapes and matching_ends([call.entry for call in run], {shapes}):
                    self.take(*(run, counterparts) if many is self.ours else (counterparts, run))
                    return

    def take(self, calls: Sequence[Call], counterparts: Sequence[Call]) -> None:
        self.ours.free.difference_update(call.place for call in calls)
        self.theirs.free.difference_update(counterpart.place for counterpart in counterparts)
        self.places.append((calls[-1].place, counterparts[-1].place))
        several = len(calls) > 1 or len(counterparts) > 1
        by_name = PairedBy.NOTHING if calls[0].names[NAME] == counterparts[0].names[NAME] else PairedBy.SCOPE
        how = PairedBy.GROUP if several else by_name
        self.found.append(Found([call.entry for call in calls], [other.entry for other in counterparts], how))


def _kind(call: Call) -> Hashable:
    return call.names[OPERATION], call.output_shape


def _is_single(calls: Sequence[Call]) -> bool:
    """Whether no such call is made of several on the other side."""
    return calls[0].names[OPERATION] not in tables().groups


def _names(calls: Sequence[Call]) -> Counter[str]:
    return Counter(call.names[NAME] for call in calls)


def _by_index(calls: Sequence[Call]) -> list[Call]:
    """By call index where one counter numbered them all, else as executed."""
    if len({(call.entry.parsed.prefix, call.entry.parsed.name) for call in calls if call.entry.parsed}) > 1:
        return list(calls)
    return sorted(calls, key=lambda call: call.entry.parsed.index or 0 if call.entry.parsed else 0)


def find_groups(
    calls: Sequence[Call], parts: Sequence[Part], counterparts: Sequence[Call]
) -> Iterator[tuple[list[Call], Call]]:
    """Find runs of ``calls`` (in execution order, with their place in it) made of ``parts``, each with a counterpart.

    Each call of a run hands its result on within the run. Runs and counterparts pair k-th with k-th among those that
    begin and end with tensors of the same shapes, where there are equally many; else those with the same outputs.
    """
    wanted: dict[EndShapes, list[Call]] = {}
    for counterpart in counterparts:
        if (shapes := end_shapes(counterpart.entry)) is not None:
            wanted.setdefault(shapes, []).append(counterpart)
    found: dict[EndShapes, list[list[Call]]] = {}
    end = 0
    for core, call in enumerate(calls):
        if core >= end and call.means(next(part.word for part in parts if not part.optional)):
            for start, run in _runs(calls, core, end, parts):
                if shapes := matching_ends([call.entry for call in run], wanted):
                    found.setdefault(shapes, []).append(run)
                    end = start + len(run)
                    break
    for shapes, runs in found.items():
        others = wanted[shapes]
        if len(runs) == len(others):
            yield from zip(runs, others, strict=True)
        else:
            marks = ([(0, call.output_statistics) for call in side] for side in ([run[-1] for run in runs], others))
            yield from ((runs[place], others[other]) for place, other in fixed_by_marks(*marks))


def _runs(calls: Sequence[Call], core: int, begin: int, parts: Sequence[Part]) -> Iterator[tuple[int, list[Call]]]:
    """Runs around the first call that may not be missing, none before ``begin``, and their starts; longest first."""
    before = next(number for number, part in enumerate(parts) if not part.optional)
    choices = product(*((True, False) if part.optional else (True,) for part in parts))
    for taken in sorted(choices, key=sum, reverse=True):
        names = [part.word for part, chosen in zip(parts, taken, strict=True) if chosen]
        start = core - sum(taken[:before])
        run = list(calls[start : start + len(names)]) if start >= begin else []
        if len(run) < len(names) or run[-1].place != run[0].place + len(run) - 1:
            continue
        if all(call.means(word) for call, word in zip(run, names, strict=True)) and _hands_on(run):
            yield start, run


def _hands_on(run: Sequence[Call]) -> bool:
    """Whether what each call gives out is taken in by a later one of the run, the last one's apart."""
    for number, call in enumerate(run[:-1]):
        taken = {recorded_values(item) for later in run[number + 1 :] for item in tensors(later.entry, "input")}
        if not any(recorded_values(item) in taken for item in tensors(call.entry, "output")):
            return False
    return True


def end_shapes(call: Entry) -> EndShapes | None:
    """Return the shapes of a call's first input and first output tensor; None where it lacks one."""
    taken, given = tensors(call, "input"), tensors(call, "output")
    return (taken[0].shape, given[0].shape) if taken and given else None


def matching_ends(run: Sequence[Entry], wanted: Container[EndShapes]) -> EndShapes | None:
    """Return the wanted end shapes that a run has: of a tensor from outside, and of its last call's first output."""
    if not (given := tensors(run[-1], "output")):
        return None
    taken = (item.shape for item in _outside(run) if item.state == "input")
    return next(((shape, given[0].shape) for shape in taken if (shape, given[0].shape) in wanted), None)


def pair_tensors(group: Sequence[Entry], counterpart: Entry) -> Iterator[tuple[Item, Item]]:
    """Pair the tensors of a group, its entries in the order of the forward calls, with its counterpart's.

    They pair by state in their order, each with the next of the same shape. Gradients whose shapes are the
    counterpart's from last to first were recorded in that order. An operand without effect has no counterpart.
    """
    free: dict[tuple[str, object], deque[Item]] = {}
    idle = operand_without_effect(counterpart)
    for item in _by_argument(counterpart, counterpart.items):
        if item.kind == "tensor" and item.name != idle:
            free.setdefault((item.state, item.shape), deque()).append(item)
    outside = list(_outside(group))
    shapes = [item.shape for item in outside if item.state == "output"]
    theirs = [item.shape for item in tensors(counterpart, "output")]
    if shapes != theirs and shapes[::-1] == theirs and is_backward(counterpart):
        outside.reverse()
    for item in outside:
        if waiting := free.get((item.state, item.shape)):
            yield item, waiting.popleft()


def _outside(group: Sequence[Entry]) -> Iterator[Item]:
    """The tensors that come from outside of the group or leave it.

    One tensor enters the computation and one leaves it, at the last of the forward calls; weights may enter anywhere,
    and so their gradients leave anywhere.
    """
    passed, free = ("output", "input") if is_backward(group[0]) else ("input", "output")
    before: set[object] = set()
    for entry in group:
        idle = operand_without_effect(entry)
        for item in _by_argument(entry, tensors(entry, passed)):
            if item.name != idle and recorded_values(item) not in before:
                yield item
        before |= {recorded_values(item) for item in tensors(entry, free)}
    yield from tensors(group[-1], free)


def _by_argument(entry: Entry, items: Sequence[Item]) -> Sequence[Item]:
    """The items of a forward entry, its inputs in the order PyTorch's function takes them."""
    order = argument_order(entry.parsed) if entry.parsed and entry.parsed.direction == FORWARD else []
    inputs = [item for item in items if item.state == "input" and item.kind == "tensor"]
    if not order or sorted(order) != list(range(len(inputs))):
        return items
    return [inputs[place] for place in order] + [item for item in items if item not in inputs]


@lru_cache(maxsize=4096)
def _adds(name: str) -> bool:
    return name.rpartition(".")[2].strip("_") in _ADDING


def operand_without_effect(entry: Entry) -> str:
    """Name the tensor that a call adds ``beta`` times, where that is 0: whatever it holds, nothing comes of it."""
    parsed = entry.parsed
    if parsed is None or not _adds(parsed.name) or parsed.direction != FORWARD:
        return ""
    inputs = [item for item in entry.items if item.state == "input"]
    betas = [item for place, item in enumerate(inputs) if item.path == ("beta",) or (place == 3 and not item.keyword)]
    is_idle = any(item.kind == "value" and item.maximum == 0 for item in betas)
    return inputs[0].name if is_idle and inputs[0].kind == "tensor" else ""


def is_backward(entry: Entry) -> bool:
    return entry.parsed is not None and entry.parsed.direction == BACKWARD


def tensors(entry: Entry, state: str) -> list[Item]:
    return [item for item in entry.items if item.state == state and item.kind == "tensor"]


def recorded_values(item: Item) -> object:
    """Return what identifies a recorded tensor."""
    return item.shape, item.maximum, item.minimum, item.mean, item.norm, item.md5
