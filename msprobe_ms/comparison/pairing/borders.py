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
    calls = [pair for pair in pairs if _is_module_call(pair, FORWARD)]
    back = {_name(pair, TARGET): pair for pair in pairs if _is_module_call(pair, BACKWARD)}
    for module, call, side in _enclosed(calls, (target, golden)):
        _replace(module, "output", call, "input", side)
        module_back, call_back = (back.get(_in_backward(each)) for each in (module, call))
        if module_back is not None and call_back is not None:
            _replace(module_back, "input", call_back, "output", side)


def _enclosed(calls: Sequence[Pair], entries: tuple[_Entries, _Entries]) -> Iterator[tuple[Pair, Pair, Side]]:
    """Yield modules, the calls that they end with on one side alone, and that side."""
    for side in (TARGET, GOLDEN):
        inside: dict[str | None, list[Pair]] = defaultdict(list)
        for call in calls:
            inside[_entry(call, side).parent].append(call)
        other = side.other
        for module in calls:
            for call in inside.get(_name(module, side), ()):
                around = ancestors(entries[other], _name(call, other))
                if _name(module, other) not in around and _ends_with(module, call, side):
                    yield module, call, side


def _ends_with(module: Pair, call: Pair, side: Side) -> bool:
    """Whether ``call`` makes on one side what ``module`` gives out, and takes in on the other what that gives out."""
    given, taken, made = (
        next(_tensors(pair, state), None) for pair, state in ((module, "output"), (call, "input"), (call, "output"))
    )
    if given is None or taken is None or made is None:
        return False
    inner, outer = fingerprint(given, side), fingerprint(given, side.other)
    if inner is None or outer is None or fingerprint(taken, side) == inner:
        return False
    return fingerprint(made, side) == inner and fingerprint(taken, side.other) == outer


def _in_backward(pair: Pair) -> str:
    parsed = _entry(pair, TARGET).parsed
    return str(parsed.in_direction(BACKWARD)) if parsed is not None else ""


def _replace(pair: Pair, state: str, other: Pair, other_state: str, side: Side) -> None:
    """Let the first row of a state hold on one side what the other pair's row holds there."""
    row, found = next(_tensors(pair, state), None), next(_tensors(other, other_state), None)
    if row is None or found is None:
        return
    places, there = list(row.places), found.places
    if places[2] is not there[2]:
        return
    places[side] = there[side]
    pair.rows[pair.rows.index(row)] = Row(places[0], places[1], tables=places[2], state=row.state)  # type: ignore[arg-type]


def _tensors(pair: Pair, state: str) -> Iterator[Row]:
    return (
        row
        for row in pair.rows
        if row.state == state and row.matched and row.is_tensor(TARGET) and row.is_tensor(GOLDEN)
    )


def _is_module_call(pair: Pair, direction: str) -> bool:
    if pair.target is None or pair.golden is None or pair.fused:
        return False
    both = pair.target.parsed, pair.golden.parsed
    return all(parsed is not None and parsed.is_module and parsed.direction == direction for parsed in both)


def _entry(pair: Pair, side: Side) -> Entry:
    entry = pair.target if side is TARGET else pair.golden
    assert entry is not None
    return entry


def _name(pair: Pair, side: Side) -> str:
    return _entry(pair, side).name
