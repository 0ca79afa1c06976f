"""Which API call stands beside which inside one scope: a call of a module, or a step of which no modules are known.

K-th with k-th where both sides called equally often: first those of one name, or of one operation under several names;
then several calls that are one of the other side's; then those of one family. Where names differ, what they give out
must have the same shape. Calls of which one side has more pair between the calls around them, where there it has not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from msprobe_ms.comparison.pairing.align import between, fixed_by_marks, longest_increasing
from msprobe_ms.comparison.pairing.api_names import FAMILY, NAME, OPERATION, Call
from msprobe_ms.comparison.pairing.call_groups import ends, find_groups, meets
from msprobe_ms.comparison.pairing.operations import tables
from msprobe_ms.dump.model import Entry


@dataclass(frozen=True, slots=True)
class Found:
    """Entries of the target beside entries of the golden, one of the two alone; ``how`` "" when their names say so."""

    target: Sequence[Entry]
    golden: Sequence[Entry]
    how: str = ""


@dataclass
class Scope:
    """One side of a scope: its calls without a twin, in execution order and of one direction.

    ``count``  how many calls it holds, those included that had a twin before
    ``free``   places of the calls that have no twin yet
    """

    calls: list[Call] = field(default_factory=list)
    count: int = 0
    free: set[int] = field(default_factory=set)

    def hold(self, entry: Entry, words: tuple[str, str, str] | None) -> None:
        """The next call; ``words`` None where it has a twin already."""
        if words is not None:
            self.calls.append(Call(entry, self.count, words))
            self.free.add(self.count)
        self.count += 1

    def left(self) -> list[Call]:
        return [call for call in self.calls if call.place in self.free]

    def by(self, key: Callable[[Call], Hashable]) -> dict[Hashable, list[Call]]:
        groups: dict[Hashable, list[Call]] = {}
        for call in self.left():
            groups.setdefault(key(call), []).append(call)
        return groups


def pair_calls(ours: Scope, theirs: Scope, *, forward: bool, module: bool) -> list[Found]:
    """``forward``: the calls are; ``module``: the scope is one call of one module."""
    pairing = _Pairing(ours, theirs)
    pairing.zip(OPERATION, lambda calls, twins: _is_single(calls) and _names(calls) != _names(twins))
    pairing.zip(NAME)
    pairing.zip(OPERATION, lambda calls, twins: _is_single(calls))
    if forward:
        pairing.groups()
    pairing.zip(OPERATION)
    pairing.zip(FAMILY)
    pairing.between()
    if forward and module:
        pairing.whole()
    return pairing.found


class _Pairing:
    def __init__(self, ours: Scope, theirs: Scope) -> None:
        self.ours, self.theirs = ours, theirs
        self.found: list[Found] = []
        #: Places of what was paired call by call.
        self.places: list[tuple[int, int]] = []

    def zip(self, width: int, when: Callable[[list[Call], list[Call]], bool] = lambda calls, twins: True) -> None:
        """Calls of one word, where equally many, and of equal shapes where their names may differ."""
        others = self.theirs.by(lambda call: call.words[width])
        for word, calls in self.ours.by(lambda call: call.words[width]).items():
            twins = others.get(word, [])
            if len(calls) != len(twins) or not when(calls, twins):
                continue
            if width == NAME:
                calls, twins = _in_order(calls), _in_order(twins)
            elif [call.given for call in calls] != [twin.given for twin in twins]:
                continue
            for call, twin in zip(calls, twins, strict=True):
                self.take([call], [twin])

    def groups(self) -> None:
        for many, one in ((self.ours, self.theirs), (self.theirs, self.ours)):
            for operation, twins in one.by(lambda call: call.words[OPERATION]).items():
                parts = tables().groups.get(str(operation))
                for run, twin in find_groups(many.left(), parts, twins) if parts else ():
                    self.take(*(run, [twin]) if many is self.ours else ([twin], run))

    def between(self) -> None:
        """Calls of one operation and shape that stand between the same two pairs, where there are equally many.

        Calls whose figures are the same, and no other's, are such pairs as well: they tell where a surplus call is.
        """
        ours, theirs = self.ours.left(), self.theirs.left()
        marks = ([(_kind(call), call.figures) for call in calls] for calls in (ours, theirs))
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
            run, twins = many.left(), one.left()
            if len(twins) == one.count == 1 and len(run) == many.count > 0:
                shapes = ends(twins[0].entry)
                if shapes and meets([call.entry for call in run], {shapes}):
                    self.take(*(run, twins) if many is self.ours else (twins, run))
                    return

    def take(self, calls: Sequence[Call], twins: Sequence[Call]) -> None:
        self.ours.free.difference_update(call.place for call in calls)
        self.theirs.free.difference_update(twin.place for twin in twins)
        self.places.append((calls[-1].place, twins[-1].place))
        several = len(calls) > 1 or len(twins) > 1
        how = "group" if several else "" if calls[0].words[NAME] == twins[0].words[NAME] else "scope"
        self.found.append(Found([call.entry for call in calls], [twin.entry for twin in twins], how))


def _kind(call: Call) -> Hashable:
    return call.words[OPERATION], call.given


def _is_single(calls: Sequence[Call]) -> bool:
    """Whether no such call is made of several on the other side."""
    return calls[0].words[OPERATION] not in tables().groups


def _names(calls: Sequence[Call]) -> Counter[str]:
    return Counter(call.words[NAME] for call in calls)


def _in_order(calls: Sequence[Call]) -> list[Call]:
    """By call index where one counter numbered them all, else as executed."""
    if len({(call.entry.parsed.prefix, call.entry.parsed.name) for call in calls if call.entry.parsed}) > 1:
        return list(calls)
    return sorted(calls, key=lambda call: call.entry.parsed.index or 0 if call.entry.parsed else 0)
