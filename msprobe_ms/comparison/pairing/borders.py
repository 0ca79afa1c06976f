"""Compare what two modules made, where one of them encloses a call that the other side makes afterwards.

A normalisation that activates stands beside one that an activation follows. Both hand the same value on: to a call
inside here, to its counterpart outside there. What the module without it gives out stands beside what the call takes
in, and so do their gradients; what the other gives out is what the call gives out, and has its row there.

Where one side activates in code without a call of its own, inside the module or after it, no call stands beside the
activation of the other. What that activation takes in or gives out is beside what the module gives out, whichever is
near it where what the modules give out is not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msprobe_ms.arrays import sketch
from msprobe_ms.comparison.fingerprints import fingerprint
from msprobe_ms.comparison.model import Pair, Row
from msprobe_ms.comparison.statistics import element_count, magnitude
from msprobe_ms.comparison.terms import GOLDEN, TARGET, Side
from msprobe_ms.dump.model import Entry, Item, ancestors
from msprobe_ms.dump.names import BACKWARD, FORWARD

_Entries = Mapping[str, Entry]
#: Part of a tensor's norm by which drift sets it apart at most, and another function further.
_NEAR = 0.01


def pair_within_borders(pairs: Sequence[Pair], target: _Entries, golden: _Entries) -> None:
    """Put beside each other what modules made before a call that one of them encloses."""
    modules = [pair for pair in pairs if _is_module_call(pair, FORWARD)]
    calls, alone = [pair for pair in modules if pair.matched], [pair for pair in modules if not pair.matched]
    back = {
        (side, entry.name): pair
        for pair in pairs
        for side in (TARGET, GOLDEN)
        if (entry := _entry(pair, side)) is not None and entry.parsed is not None and entry.parsed.direction == BACKWARD
    }
    enclosed = *_enclosed(calls, (target, golden)), *_enclosed_alone(calls, alone), *_followed_by_code(calls, alone)
    ends = [(*each, "input", "output") for each in enclosed]
    ends += [(*each, "output", "input") for each in _computed_inside(calls, alone)]
    for module, call, side, state, state_back in ends:
        _replace(module, "output", call, state, side)
        module_back, call_back = (back.get((side, _in_backward(each, side))) for each in (module, call))
        if module_back is not None and module_back.matched and call_back is not None:
            _replace(module_back, "input", call_back, state_back, side)


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


def _enclosed_alone(calls: Sequence[Pair], alone: Sequence[Pair]) -> Iterator[tuple[Pair, Pair, Side]]:
    """Yield the same of calls without a counterpart: one module that activates everywhere beside one for each norm."""
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


def _followed_by_code(calls: Sequence[Pair], alone: Sequence[Pair]) -> Iterator[tuple[Pair, Pair, Side]]:
    """Yield the same of calls without a counterpart where code of the other side does after the module what they do."""
    for side in (TARGET, GOLDEN):
        inside = _inside(alone, side)
        for module in calls if inside else ():
            for call in inside.get(_name(module, side), ()):
                if not _ends_with(module, call, side):
                    continue
                taken, given = _tensor(call, "input", side), _tensor(module, "output", side.other)
                if taken is not None and given is not None and _is_rather(taken, given, side):
                    yield module, call, side


def _is_rather(row: Row, given: Row, side: Side) -> bool:
    """Whether a call's row holds on this side what is near what a module gives out on the other, and its own is not."""
    its = _item(given, side.other)
    return _is_near(_item(row, side), its) and not _is_near(_item(given, side), its)


def _computed_inside(calls: Sequence[Pair], alone: Sequence[Pair]) -> Iterator[tuple[Pair, Pair, Side]]:
    """Yield modules, the call without a counterpart that follows them on one side alone, and that side.

    The other side's module gives out what the call does, and holds no call that does so.
    """
    for side in (TARGET, GOLDEN):
        takers = {
            fingerprint(taken, side): call
            for call in reversed(alone)
            if _entry(call, side) is not None and (taken := _tensor(call, "input", side)) is not None
        }
        inside = _inside([*calls, *alone], side.other) if takers else {}
        for module in calls if takers else ():
            given = _tensor(module, "output", side)
            seen = fingerprint(given, side) if given is not None and given.matched else None
            call = takers.get(seen) if seen is not None else None
            made = _tensor(call, "output", side) if call is not None else None
            if given is None or call is None or made is None or not _is_rather(made, given, side):
                continue
            if not any(_ends_with(module, each, side.other) for each in inside.get(_name(module, side.other), ())):
                yield module, call, side


def _is_near(one: Item | None, other: Item | None) -> bool:
    """Whether two tensors are so near that one function made them, drift or not."""
    if one is None or other is None or one.kind != "tensor" or other.kind != "tensor":
        return False
    if element_count(one) != element_count(other) or not (
        isinstance(one.norm, float) and isinstance(other.norm, float)
    ):
        return False
    ours, theirs = (sketch.decode(each.sketch) if each.sketch else None for each in (one, other))
    if ours is not None and theirs is not None:
        return sketch.distance(ours, theirs) <= _NEAR * other.norm
    largest = max(map(magnitude, (other.maximum, other.minimum)))
    ends = ((one.maximum, other.maximum), (one.minimum, other.minimum))
    near = all(isinstance(a, float) and isinstance(b, float) and abs(a - b) <= _NEAR * largest for a, b in ends)
    return near and abs(one.norm - other.norm) <= _NEAR * other.norm


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
    places[side] = there[side] if places[2] is there[2] else _item(found, side)
    pair.rows[pair.rows.index(row)] = Row(places[0], places[1], tables=places[2], state=row.state)  # type: ignore[arg-type]


def _tensor(pair: Pair, state: str, side: Side) -> Row | None:
    """The first row of a state that holds a tensor on one side."""
    return next((row for row in pair.rows if row.state == state and row.is_tensor(side)), None)


def _item(row: Row, side: Side) -> Item | None:
    return row.golden if side is GOLDEN else row.target


def _is_module_call(pair: Pair, direction: str) -> bool:
    for entry in (pair.target, pair.golden):
        if entry is None:
            continue
        parsed = entry.parsed
        if parsed is None or not parsed.is_module or parsed.direction != direction:
            return False
    return not pair.fused


def _entry(pair: Pair, side: Side) -> Entry | None:
    return pair.target if side is TARGET else pair.golden


def _name(pair: Pair, side: Side) -> str:
    entry = _entry(pair, side)
    return entry.name if entry is not None else ""


def _class_name(pair: Pair, side: Side) -> str:
    entry = _entry(pair, side)
    return entry.parsed.class_name.lower() if entry is not None and entry.parsed is not None else ""
