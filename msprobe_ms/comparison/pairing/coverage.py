"""Measure how much of two dumps was compared: modules and values without a counterpart, and dumps that end early.

No dump says that its step was left by an exception. It shows: what the other side has more all comes after the last
call that both have, and the call around that one never ended, or there is no backward, or most of it is missing.
A dump of calls that were chosen has gaps instead, unless they are the first ones: then the lines say so as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from msprobe_ms.comparison.model import Pair, Row
from msprobe_ms.comparison.pairing.updates import PARAMETER_SYNONYMS
from msprobe_ms.comparison.terms import GOLDEN, TARGET, PairedBy
from msprobe_ms.dump.dialects import KERNEL
from msprobe_ms.dump.model import Dump, Entry, Item, knows_root
from msprobe_ms.dump.names import BACKWARD, FORWARD, PARAMETERS_GRAD, is_loss, is_update
from msprobe_ms.support.translation import tr

#: Calls without a counterpart before the end, as a share of those with one, up to which what is missing is the end
#: alone: wrappers and layers of a framework's own lie in between as well.
_FEW = 0.25


def anything_compared(pairs: Sequence[Pair]) -> bool:
    """Return whether any value was compared; a loss beside calls says of none of them which it stands beside."""
    compared = (pair for pair in pairs if _is_compared(pair))
    if any(pair.target is None or not is_loss(pair.target.parsed) for pair in compared):
        return True
    return bool(pairs) and all(map(_is_compared, pairs))  # losses alone were recorded


def _is_compared(pair: Pair) -> bool:
    return any(row.matched for row in pair.rows)


def is_incomplete(pairs: Sequence[Pair]) -> bool:
    """Return whether most was left out: modules without a counterpart on both sides, or more values without than with.

    Where both dumps recorded modules, theirs are the values that count: functions and kernels inside paired modules may
    well be others in another framework. A dump all of whose values were compared is compared wholly, however much more
    the other one holds (levels mix and L0).
    """
    if all(unmatched_modules(pairs)):
        return True
    compared, ours, theirs = _counts(pairs)
    return bool(ours and theirs) and max(ours, theirs) > compared


def larger_side(pairs: Sequence[Pair]) -> tuple[str, int] | None:
    """Return the side with more values without a counterpart than were compared, and how many they are."""
    compared, ours, theirs = _counts(pairs)
    side, alone = max(("target", ours), ("golden", theirs), key=lambda each: each[1])
    return (side, alone) if alone > compared else None


def sides_without_values(pairs: Sequence[Pair]) -> list[str]:
    """Return the sides (``target``, ``golden``) that hold calls without values, as dumps of task structure do."""
    sides = (("target", list(_targets(pairs))), ("golden", list(_goldens(pairs))))
    return [side for side, entries in sides if entries and not any(entry.items for entry in entries)]


def unmatched_modules(pairs: Sequence[Pair]) -> tuple[list[str], list[str]]:
    """Return the names of forward module entries without a counterpart, of the target and of the golden.

    Those apart that are rightly without one.
    """
    expected, expected_there = expected_alone(pairs)
    ours = [pair.target for pair in pairs if pair.target is not None and pair.golden is None]
    theirs = [pair.golden for pair in pairs if pair.golden is not None and pair.target is None]
    names, others = ([entry.name for entry in side if _is_call(entry)] for side in (ours, theirs))
    return [name for name in names if name not in expected], [name for name in others if name not in expected_there]


def said_unmatched(pairs: Sequence[Pair]) -> list[str]:
    """Return the names of forward module entries that a mapping says have no counterpart."""
    alone = [pair.target for pair in pairs if pair.target is not None and pair.how == PairedBy.UNMATCHED]
    return [entry.name for entry in alone if _is_call(entry)]


_RIGHTLY_ALONE = (PairedBy.UNMATCHED, PairedBy.ELSEWHERE)


def expected_alone(pairs: Sequence[Pair]) -> tuple[set[str], set[str]]:
    """Return the names of entries of the target and of the golden that are rightly without a counterpart.

    The mapping says so; their results are compared elsewhere; they run inside of a fused module; they are a
    framework's own parts of a layer that has a counterpart (``LSTM`` runs ``_DynamicLSTM``); or they are the model
    itself, which the other side did not record, as its parameters are all in modules below it.
    """
    alone = [pair for pair in pairs if not pair.matched]
    if not alone:
        return set(), set()
    rightly = [pair for pair in alone if pair.how in _RIGHTLY_ALONE]
    ours, theirs = ({entry.name for entry in side(rightly)} for side in (_targets, _goldens))
    for side, expected in ((_targets, ours), (_goldens, theirs)):
        parts = [entry for entry in side(alone) if entry.parsed and entry.parsed.class_name.startswith("_")]
        paired = {entry.name for entry in side(pair for pair in pairs if pair.matched)} if parts else set()
        expected.update(entry.name for entry in parts if entry.parent in paired)
        if fused := [entry.name for entry in side(pair for pair in pairs if pair.fused)]:
            expected |= _inside(fused, {entry.name: entry.parent for entry in side(alone)})
    for side, other, expected in ((_targets, _goldens, ours), (_goldens, _targets, theirs)):
        root = [entry.name for entry in side(alone) if entry.parsed is not None and entry.parsed.is_root]
        if root and not knows_root(other(pairs)):
            expected.update(root)
    return ours, theirs


def _inside(calls: Iterable[str], parents: Mapping[str, str | None]) -> set[str]:
    """Those of ``parents`` (entry → what encloses it) that run in one of the calls, however deep."""
    inside = set(calls)
    for name in parents:
        path: dict[str, None] = {}
        up: str | None = name
        while up is not None and up in parents and up not in path and up not in inside:
            path[up] = None
            up = parents[up]
        if up in inside:
            inside.update(path)
    return inside


def has_modules(pairs: Sequence[Pair]) -> bool:
    """Return whether both dumps recorded modules."""
    return all(any(entry.is_module for entry in side(pairs)) for side in (_targets, _goldens))


def _counts(pairs: Sequence[Pair]) -> tuple[int, int, int]:
    """Values compared, and those without a counterpart of the target and of the golden."""
    modules_only, expected = has_modules(pairs), expected_alone(pairs)
    compared = ours = theirs = 0
    for pair in pairs:
        entry = pair.target or pair.golden
        if entry is None or (modules_only and not entry.is_module):
            continue
        if not pair.matched and entry.name in expected[GOLDEN if pair.target is None else TARGET]:
            continue
        for row in pair.rows:
            compared += row.matched
            ours += not row.in_golden
            theirs += not row.in_target
    return compared, ours, theirs


def _targets(pairs: Iterable[Pair]) -> Iterator[Entry]:
    return (pair.target for pair in pairs if pair.target is not None)


def _goldens(pairs: Iterable[Pair]) -> Iterator[Entry]:
    return (pair.golden for pair in pairs if pair.golden is not None)


def _is_call(entry: Entry) -> bool:
    return entry.parsed is not None and entry.parsed.is_module and entry.parsed.direction == FORWARD


@dataclass(frozen=True)
class _Side:
    """One dump; ``alone``: names of its entries without a counterpart; ``counterparts``: name → name, of the others."""

    name: str
    dump: Dump
    alone: set[str]
    counterparts: dict[str, str]
    modules_only: bool
    expected: set[str]

    def calls(self, direction: str) -> list[Entry]:
        """The entries that count: where both dumps recorded modules only those."""
        return [
            entry
            for entry in self.dump.entries.values()
            if entry.parsed is not None
            and entry.parsed.direction == direction
            and (entry.parsed.is_module or not self.modules_only)
            and not entry.recomputed
            and not is_update(entry.parsed)
            and not (entry.name in self.alone and entry.name in self.expected)
        ]

    @property
    def has_gradients(self) -> bool:
        entries = self.dump.entries.values()
        return any(entry.parsed and entry.parsed.direction in (BACKWARD, PARAMETERS_GRAD) for entry in entries)


def early_ends(pairs: Sequence[Pair], target: Dump, golden: Dump) -> list[str]:
    """Describe which side ends early: its last call, and what the other goes on with; [] where both are whole.

    ``target`` and ``golden`` are the dumps as they were paired.
    """
    if not any(pair.matched for pair in pairs) or sides_without_values(pairs):
        return []
    if all(pair.matched for pair in pairs) or any(map(_holds_kernels, (target, golden))):
        return []
    modules_only, expected = has_modules(pairs), expected_alone(pairs)
    ours = {pair.target.name: pair.golden.name for pair in pairs if pair.target is not None and pair.golden is not None}
    mine = {pair.target.name for pair in pairs if pair.target is not None and pair.golden is None}
    others = {pair.golden.name for pair in pairs if pair.golden is not None and pair.target is None}
    theirs = {counterpart: name for name, counterpart in ours.items()}
    sides = (
        _Side("target", target, mine, ours, modules_only, expected[TARGET]),
        _Side("golden", golden, others, theirs, modules_only, expected[GOLDEN]),
    )
    return [line for side, other in (sides, sides[::-1]) for line in _lines(side, other)]


def _lines(side: _Side, other: _Side) -> Iterator[str]:
    none = other.has_gradients and not side.has_gradients
    end = _end(side, other, FORWARD)
    if end is not None and (none or _is_left_open(side, other, end.last) or len(end.missing) > end.compared):
        backward = tr("; it has gradients, the {name} has none", name=tr(side.name)) if none else ""
        yield tr("the {name} ends early: {told}{backward}", name=tr(side.name), told=end.told(other), backward=backward)
    elif none:
        yield tr(
            "the {name} ends before its backward: the {other_name} has gradients, the {name} has none",
            name=tr(side.name),
            other_name=tr(other.name),
        )
    elif (end := _end(side, other, BACKWARD)) is not None and len(end.missing) > end.compared:
        yield tr("the backward of the {name} ends early: {told}", name=tr(side.name), told=end.told(other))


@dataclass(frozen=True)
class _End:
    """``last``: of the calls of one side that the other has too; ``missing`` are those of the other behind it."""

    last: Entry
    missing: list[Entry]
    compared: int

    def told(self, other: _Side) -> str:
        more = tr(" and {count} more calls", count=len(self.missing) - 1) if len(self.missing) > 1 else ""
        return tr(
            "its last call is {name}, the {other_name} goes on with {third_name}{more}",
            name=self.last.name,
            other_name=tr(other.name),
            third_name=self.missing[0].name,
            more=more,
        )


def _end(side: _Side, other: _Side, direction: str) -> _End | None:
    """Where a side ends; None where what it lacks, or has of its own, is not at the end alone."""
    mine, theirs = side.calls(direction), other.calls(direction)
    places = [number for number, entry in enumerate(theirs) if entry.name not in other.alone]
    last = next((number for number in range(len(mine) - 1, -1, -1) if mine[number].name not in side.alone), None)
    if not places or last is None:
        return None
    missing = theirs[places[-1] + 1 :]
    gaps, own = places[-1] + 1 - len(places), len(mine) - 1 - last
    if not missing or gaps > _FEW * len(places) or own > _FEW * len(missing):
        return None
    return _End(mine[last], missing, len(places))


def _is_left_open(side: _Side, other: _Side, last: Entry) -> bool:
    """Whether the call around a side's last one began there and did not end, as it did on the other side."""
    counterpart = other.dump.entries.get(side.counterparts.get(last.name, ""))
    if counterpart is None or last.parent is None or last.parent in side.dump.entries:
        return False
    return counterpart.parent in other.alone


def _holds_kernels(dump: Dump) -> bool:
    """Kernels of forward and backward are another in other ages of a framework and modes of execution."""
    return any(entry.parsed is not None and entry.parsed.prefix == KERNEL for entry in dump.entries.values())


#: Running statistics of normalisation, as either framework names them.
RUNNING_STATISTICS = frozenset(
    name for both in PARAMETER_SYNONYMS.items() for name in both if both[1].startswith("running_")
)


@dataclass(frozen=True)
class LoneStatistics:
    """Running statistics that ``holder`` recorded and ``other`` did not: their ``modules`` (dotted) and ``names``."""

    holder: str
    other: str
    modules: list[str]
    names: list[str]


def lone_statistics(pairs: Sequence[Pair]) -> LoneStatistics | None:
    """Find running statistics of paired modules without a counterpart, where the other side recorded none at all."""
    held: tuple[dict[str, None], dict[str, None]] = {}, {}
    names: dict[str, None] = {}
    for pair in pairs:
        for row in pair.rows if pair.matched else ():
            if row.state != "parameters":
                continue
            for side, (item, entry) in enumerate(((row.target, pair.target), (row.golden, pair.golden))):
                if _is_one(item) and entry is not None and entry.parsed is not None:
                    held[side][entry.parsed.name or entry.parsed.class_name] = None
                    names[item.path[-1]] = None
    if bool(held[0]) == bool(held[1]):
        return None
    holder, other = ("target", "golden") if held[0] else ("golden", "target")
    return LoneStatistics(holder, other, list(held[0] or held[1]), list(names))


def is_running_statistic(row: Row) -> bool:
    """Return whether the item of an unmatched row is a running statistic."""
    return row.state == "parameters" and _is_one(row.target or row.golden)


def _is_one(item: Item | None) -> TypeGuard[Item]:
    return item is not None and item.path[-1:] != () and item.path[-1] in RUNNING_STATISTICS
