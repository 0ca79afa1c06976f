"""Find calls without a counterpart of which nothing is lost: the tensors that they give out are compared elsewhere.

A Sequential around three layers, an Identity, a Dropout of probability 0, a Cell that one side alone puts around
another: what they give out is what a call inside them made, or a call after them takes in. A fault in such a call is
seen there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msprobe_ms.comparison.fingerprints import Fingerprint, fingerprint_of, norm_of
from msprobe_ms.comparison.model import Pair
from msprobe_ms.comparison.terms import GOLDEN, TARGET, PairedBy, Side
from msprobe_ms.dump.model import Entry, Item
from msprobe_ms.dump.names import BACKWARD, FORWARD


def mark_compared_elsewhere(pairs: Sequence[Pair]) -> None:
    """Set ``how`` of each module call without a counterpart all of whose results are compared in rows of others."""
    alone = [pair for pair in pairs if not pair.matched and pair.how == PairedBy.NOTHING]
    for side in (TARGET, GOLDEN):
        given = {
            id(pair): tensors
            for pair in alone
            if (entry := pair.target if side is TARGET else pair.golden) is not None and _is_module_call(entry)
            if (tensors := set(map(fingerprint_of, filter(_is_result, entry.items))))
        }
        if not given:
            continue
        norms = {tensor[-1] for tensors in given.values() for tensor in tensors if tensor is not None}
        compared: set[Fingerprint | None] = set(_compared(pairs, side, norms))
        for pair in alone:
            if id(pair) in given and given[id(pair)] <= compared:
                pair.how = PairedBy.ELSEWHERE


def with_lone_parameters(pairs: Iterable[Pair]) -> list[tuple[Side, str]]:
    """Return the forward calls of modules so marked that have parameters of their own, which stand beside nothing.

    Not the model itself: many dumps hold the modules inside of it alone.
    """
    alone = [pair for pair in pairs if pair.how == PairedBy.ELSEWHERE]
    calls = [(TARGET, pair.target) if pair.target is not None else (GOLDEN, pair.golden) for pair in alone]
    return [
        (side, entry.name)
        for side, entry in calls
        if entry is not None
        and entry.parsed is not None
        and entry.parsed.direction == FORWARD
        and not entry.parsed.is_root
        if any(item.state == "parameters" for item in entry.items)
    ]


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
