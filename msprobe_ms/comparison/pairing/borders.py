"""Compare what two modules made, where one of them encloses a call that the other side makes afterwards.

A normalisation that activates stands beside one that an activation follows. Both hand the same value on: to a call
inside here, to its counterpart outside there. What the module without it gives out stands beside what the call takes
in, and so do their gradients; what the other gives out is what the call gives out, and has its row there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msprobe_ms.comparison.fingerprints import fingerprint
from msprobe_ms.comparison.model import Pair, Row
from msprobe_ms.comparison.terms import GOLDEN, TARGET, Side
from msprobe_ms.dump.model import Entry, ancestors
from msprobe_ms.dump.names import BACKWARD, FORWARD

_Entries = Mapping[str, Entry]


def pair_within_borders(pairs: Sequence[Pair], target: _Entries, golden: _Entries) -> None:
    """Put beside each other what modules made before a call that one of them encloses."""
    calls = [pair for pair in pairs if pair.matched and _is_module_call(pair, FORWARD)]
    back = {
        (side, entry.name): pair
        for pair in pairs
        for side in (TARGET, GOLDEN)
        if (entry := _entry(pair, side)) is not None and entry.parsed is not None and entry.parsed.direction == BACKWARD
    }
    ends = [*_enclosed(calls, (target, golden)), *_enclosed_alone(calls, pairs)]
    for module, call, side in ends:
        _replace(module, "output", call, "input", side)
        module_back, call_back = (back.get((side, _in_backward(each, side))) for each in (module, call))
        if module_back is not None and module_back.matched and call_back is not None:
            _replace(module_back, "input", call_back, "output", side)


def _enclosed(calls: Sequence[Pair], entries: tuple[_Entries, _Entries]) -> Iterator[tuple[Pair, Pair, Side]]:
    """Yield modules, the calls that they end with on one side alone, and that side."""
    for side in (TARGET, GOLDEN):
        inside = _inside(calls, side)
        other = side.other
        for module in calls:
            for call in inside.get(_name(module, side), ()):
                around = ancestors(entries[other], _name(call, other))
                if _name(module, other) in around or not _ends_with(module, call, side):
                    continue
                taken, given = (_tensor(*each, other) for each in ((call, "input"), (module, "output")))
                if taken is not None and given is not None and fingerprint(taken, other) == fingerprint(given, other):
                    yield module, call, side


def _enclosed_alone(calls: Sequence[Pair], pairs: Sequence[Pair]) -> Iterator[tuple[Pair, Pair, Side]]:
    """Yield the same of calls without a counterpart: one module that activates everywhere beside one for each norm."""
    alone = [pair for pair in pairs if not pair.matched and _is_module_call(pair, FORWARD)]
    for side in (TARGET, GOLDEN):
        inside, outside = _inside(alone, side), defaultdict[object, set[str]](set)
        for call in alone:
            if (taken := _tensor(call, "input", side.other)) is not None:
                outside[fingerprint(taken, side.other)].add(_class_name(call, side.other))
        for module in calls if inside and outside else ():
            for call in inside.get(_name(module, side), ()):
                given = _tensor(module, "output", side.other)
                seen = fingerprint(given, side.other) if given is not None else None
                after = outside.get(seen, set()) if seen is not None else set()
                if _class_name(call, side) in after and _ends_with(module, call, side):
                    yield module, call, side


def _inside(calls: Sequence[Pair], side: Side) -> dict[str, list[Pair]]:
    """The calls by the name of the call right around them on one side."""
    found: dict[str, list[Pair]] = defaultdict(list)
    for call in calls:
        if (entry := _entry(call, side)) is not None and entry.parent is not None:
            found[entry.parent].append(call)
    return found


def _ends_with(module: Pair, call: Pair, side: Side) -> bool:
    """Whether ``call`` makes on one side what ``module`` gives out there, of something else."""
    places = (module, "output"), (call, "input"), (call, "output")
    given, taken, made = (row and fingerprint(row, side) for row in (_tensor(*place, side) for place in places))
    return given is not None and given == made and given != taken


def _in_backward(pair: Pair, side: Side) -> str:
    entry = _entry(pair, side)
    return str(entry.parsed.in_direction(BACKWARD)) if entry is not None and entry.parsed is not None else ""


def _replace(pair: Pair, state: str, other: Pair, other_state: str, side: Side) -> None:
    """Let the first row of a state hold on one side what the other pair's row holds there."""
    row, found = _tensor(pair, state, side), _tensor(other, other_state, side)
    if row is None or found is None or not row.matched:
        return
    places, there = list(row.places), found.places
    item = found.golden if side is GOLDEN else found.target
    places[side] = there[side] if places[2] is there[2] else item
    pair.rows[pair.rows.index(row)] = Row(places[0], places[1], tables=places[2], state=row.state)  # type: ignore[arg-type]


def _tensor(pair: Pair, state: str, side: Side) -> Row | None:
    """The first row of a state that holds a tensor on one side."""
    return next((row for row in pair.rows if row.state == state and row.is_tensor(side)), None)


def _is_module_call(pair: Pair, direction: str) -> bool:
    parsed = (entry.parsed for entry in (pair.target, pair.golden) if entry is not None)
    are_calls = all(each is not None and each.is_module and each.direction == direction for each in parsed)
    return are_calls and not pair.fused


def _entry(pair: Pair, side: Side) -> Entry | None:
    return pair.target if side is TARGET else pair.golden


def _name(pair: Pair, side: Side) -> str:
    entry = _entry(pair, side)
    return entry.name if entry is not None else ""


def _class_name(pair: Pair, side: Side) -> str:
    entry = _entry(pair, side)
    return entry.parsed.class_name.lower() if entry is not None and entry.parsed is not None else ""
