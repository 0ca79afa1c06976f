"""Find calls without a counterpart of which nothing is lost: the tensors that they give out are compared elsewhere.

A Sequential around three layers, an Identity, a Dropout of probability 0, a Cell that one side alone puts around
another: what they give out is what a call inside them made, or a call after them takes in. A fault in such a call is
seen there. A fault in parameters is not: if both sides have modules left with parameters of their own, they may be
each other's counterparts, and are missed.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from msprobe_ms.comparison.fingerprints import Fingerprint, fingerprint_of, norm_of
from msprobe_ms.comparison.model import Pair
from msprobe_ms.comparison.pairing.coverage import expected_alone
from msprobe_ms.comparison.terms import GOLDEN, TARGET, PairedBy, Side
from msprobe_ms.dump.model import Entry, Item
from msprobe_ms.dump.names import BACKWARD, FORWARD, PARAMETERS, PARAMETERS_GRAD


def mark_compared_elsewhere(pairs: Sequence[Pair]) -> None:
    """Set ``how`` of each module call without a counterpart all of whose results are compared in rows of others.

    Not of modules with parameters of their own, if both sides have such modules left.
    """
    alone = [pair for pair in pairs if not pair.matched and pair.how == PairedBy.NOTHING]
    found = [(side, pair) for side in (TARGET, GOLDEN) for pair in _given_elsewhere(pairs, alone, side)]
    if not found:
        return
    missed = [_with_own_parameters(alone, side, expected) for side, expected in enumerate(expected_alone(pairs))]
    for side, pair in found:
        entry = _entry(pair, side)
        if not all(missed) or entry is None or _module(entry) not in missed[side]:
            pair.how = PairedBy.ELSEWHERE


def _given_elsewhere(pairs: Sequence[Pair], alone: Sequence[Pair], side: Side) -> list[Pair]:
    """Those of ``alone`` that are module calls of one side, and whose results are all compared in rows of others."""
    given = {
        id(pair): tensors
        for pair in alone
        if (entry := _entry(pair, side)) is not None and _is_module_call(entry)
        if (tensors := set(map(fingerprint_of, filter(_is_result, entry.items))))
    }
    if not given:
        return []
    norms = {tensor[-1] for tensors in given.values() for tensor in tensors if tensor is not None}
    compared: set[Fingerprint | None] = set(_compared(pairs, side, norms))
    return [pair for pair in alone if id(pair) in given and given[id(pair)] <= compared]


def _with_own_parameters(alone: Iterable[Pair], side: Side | int, expected: Container[str]) -> set[str]:
    """The modules of one side that are missed and have parameters of their own; not the model itself."""
    entries = [entry for pair in alone if (entry := _entry(pair, side)) is not None and entry.parsed is not None]
    called = {
        _module(entry)
        for entry in entries
        if _is_module_call(entry) and not (entry.parsed and entry.parsed.is_root) and entry.name not in expected
    }
    return {_module(entry) for entry in entries if _module(entry) in called and _holds_parameters(entry)}


def _holds_parameters(entry: Entry) -> bool:
    if entry.parsed is not None and entry.parsed.direction == PARAMETERS_GRAD:
        return True
    return _records_parameters(entry)


def _records_parameters(entry: Entry) -> bool:
    return any(item.state == PARAMETERS for item in entry.items)


def with_lone_parameters(pairs: Iterable[Pair]) -> list[tuple[Side, str]]:
    """Return the modules so marked that have parameters of their own, which stand beside nothing.

    Not the model itself: many dumps hold the modules inside of it alone.
    """
    alone = [pair for pair in pairs if pair.how == PairedBy.ELSEWHERE]
    calls = [(TARGET, pair.target) if pair.target is not None else (GOLDEN, pair.golden) for pair in alone]
    return [
        (side, entry.parsed.name)
        for side, entry in calls
        if entry is not None
        and entry.parsed is not None
        and entry.parsed.direction == FORWARD
        and not entry.parsed.is_root
        if _records_parameters(entry)
    ]


def _entry(pair: Pair, side: Side | int) -> Entry | None:
    return pair.target if side == TARGET else pair.golden


def _module(entry: Entry) -> str:
    """The path of the module of an entry."""
    return entry.parsed.name if entry.parsed is not None else ""


def _is_result(item: Item) -> bool:
    return item.state == "output" and item.kind == "tensor"


def _is_module_call(entry: Entry) -> bool:
    return entry.parsed is not None and entry.parsed.is_module and entry.parsed.direction in (FORWARD, BACKWARD)


def _compared(pairs: Iterable[Pair], side: Side, norms: set[object]) -> Iterator[Fingerprint]:
    """The tensors of one side that stand beside one of the other, among those with one of these norms."""
    for pair in pairs:
        for row in pair.rows if pair.matched else ():
            if row.matched and row.state in ("input", "output") and norm_of(row, side) in norms:
                item = row.target if side is TARGET else row.golden
                if item is not None and item.kind == "tensor" and (known := fingerprint_of(item)) is not None:
                    yield known
