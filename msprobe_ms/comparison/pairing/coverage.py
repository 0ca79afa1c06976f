"""Whether enough was compared for agreement to mean anything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msprobe_ms.comparison.pairing.rules.layer import NOWHERE
from msprobe_ms.dump.names import FORWARD

#: Tolerances beyond which a value is far apart. Healthy nets of one weight stay below 10 however deep; after updates
#: the noise of gradients was seen to reach 40 in common nets, and thousands in nets of 50 layers.
_FAR = 100.0

if TYPE_CHECKING:
    from msprobe_ms.comparison.model import Pair
    from msprobe_ms.dump.model import Entry


def is_incomplete(pairs: Sequence[Pair]) -> bool:
    """Whether most was left out: modules without a twin on both sides, or more values without a twin than compared.

    Where both dumps recorded modules, theirs are the values that count: functions and kernels inside paired modules may
    well be others in another framework. A dump all of whose values were compared is compared wholly, however much more
    the other one holds (levels mix and L0).
    """
    if all(unmatched_modules(pairs)):
        return True
    compared, ours, theirs = _counts(pairs)
    return bool(ours and theirs) and max(ours, theirs) > compared


def larger_side(pairs: Sequence[Pair]) -> tuple[str, int] | None:
    """``target`` or ``golden``, the side with more values without a twin than were compared, and how many they are."""
    compared, ours, theirs = _counts(pairs)
    side, alone = max(("target", ours), ("golden", theirs), key=lambda each: each[1])
    return (side, alone) if alone > compared else None


def far_apart(pairs: Sequence[Pair]) -> int:
    """How many inputs of forward calls lie further apart than any drift of sound computations from equal weights.

    Where no origin is found for them, trainings have gone apart: an earlier step shows where.
    """
    return sum(
        row.differs and row.deviation is not None and not row.deviation <= _FAR * (row.tolerance or 0.0)
        for pair in pairs
        if (entry := pair.target) is not None and (entry.parsed is None or entry.parsed.direction == FORWARD)
        for row in pair.rows
        if row.state == "input"
    )


def sides_without_values(pairs: Sequence[Pair]) -> list[str]:
    """``target``, ``golden``: those that hold calls and no values of them, as dumps of task structure do."""
    sides = (("target", list(_targets(pairs))), ("golden", list(_goldens(pairs))))
    return [side for side, entries in sides if entries and not any(entry.items for entry in entries)]


def unmatched_modules(pairs: Sequence[Pair]) -> tuple[list[str], list[str]]:
    """Names of forward module entries without a twin, of the target and of the golden.

    Those apart that are rightly without one.
    """
    expected, expected_there = expected_alone(pairs)
    ours = [pair.target for pair in pairs if pair.target is not None and pair.golden is None]
    theirs = [pair.golden for pair in pairs if pair.golden is not None and pair.target is None]
    names, others = ([entry.name for entry in side if _is_call(entry)] for side in (ours, theirs))
    return [name for name in names if name not in expected], [name for name in others if name not in expected_there]


def said_unmatched(pairs: Sequence[Pair]) -> list[str]:
    """Names of forward module entries of which the mapping says that they have no twin."""
    alone = [pair.target for pair in pairs if pair.target is not None and pair.how == NOWHERE]
    return [entry.name for entry in alone if _is_call(entry)]


def expected_alone(pairs: Sequence[Pair]) -> tuple[set[str], set[str]]:
    """Names of entries of the target and of the golden that are rightly without a twin.

    The mapping says so; they run inside of a fused module; or they are a framework's own parts of a layer that has a
    twin (``LSTM`` runs ``_DynamicLSTM``).
    """
    ours = {pair.target.name for pair in pairs if pair.target is not None and pair.how == NOWHERE}
    theirs: set[str] = set()
    alone = [pair for pair in pairs if not pair.matched]
    if not alone:
        return ours, theirs
    for side, expected in ((_targets, ours), (_goldens, theirs)):
        parts = [entry for entry in side(alone) if entry.parsed and entry.parsed.class_name.startswith("_")]
        paired = {entry.name for entry in side(pair for pair in pairs if pair.matched)} if parts else set()
        expected.update(entry.name for entry in parts if entry.parent in paired)
        if fused := [entry.name for entry in side(pair for pair in pairs if pair.fused)]:
            expected |= _inside(fused, {entry.name: entry.parent for entry in side(alone)})
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
    """Whether both dumps recorded modules."""
    return any(map(_is_module, _targets(pairs))) and any(map(_is_module, _goldens(pairs)))


def _counts(pairs: Sequence[Pair]) -> tuple[int, int, int]:
    """Values compared, and those without a twin of the target and of the golden."""
    modules_only, expected = has_modules(pairs), expected_alone(pairs)
    compared = ours = theirs = 0
    for pair in pairs:
        entry = pair.target or pair.golden
        if entry is None or (modules_only and not _is_module(entry)):
            continue
        if not pair.matched and entry.name in expected[pair.target is None]:
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


def _is_module(entry: Entry) -> bool:
    return entry.parsed is not None and entry.parsed.is_module


def _is_call(entry: Entry) -> bool:
    return entry.parsed is not None and entry.parsed.is_module and entry.parsed.direction == FORWARD
