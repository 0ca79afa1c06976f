"""Put plain arguments into one row that two functions take by other names or in other places: ``axis`` beside ``dim``.

Tensors have their counterparts from the pairing of items; these are found by what the argument means.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from msprobe_ms.comparison.model import Pair, Row
from msprobe_ms.comparison.pairing.arguments import same_arguments
from msprobe_ms.comparison.terms import PairedBy
from msprobe_ms.dump.model import Entry, Item
from msprobe_ms.dump.names import FORWARD, is_function

#: Places of rows of the target → of the golden.
_Places = dict[int, int]


def pair_arguments(pairs: Sequence[Pair], frameworks: tuple[str, str]) -> None:
    """Join the rows of inputs that stand alone on each side of two functions and are the same argument."""
    known: dict[Hashable, _Places] = {}
    for pair in pairs:
        target, golden = pair.target, pair.golden
        if target is None or golden is None or not _is_forward_function(target):
            continue
        ours = {place: row for place, row in enumerate(pair.rows) if not row.in_golden and row.state == "input"}
        theirs = {place: row for place, row in enumerate(pair.rows) if not row.in_target and row.state == "input"}
        if not (ours and theirs):
            continue
        mine = {place: row.target for place, row in ours.items() if row.target is not None}
        others = {place: row.golden for place, row in theirs.items() if row.golden is not None}
        # Calls of one function with arguments of one kind have them in the same places.
        key = (_function(target), _function(golden), pair.how, *map(_kind, mine.items()), *map(_kind, others.items()))
        if key not in known:
            beside = dict(_beside(target, golden, frameworks, pair.how == PairedBy.GROUP))
            at = {item.name: place for place, item in others.items()}
            known[key] = {place: at[name] for place, item in mine.items() if (name := beside.get(item.name)) in at}
        pair.rows = _joined(pair.rows, known[key]) if known[key] else pair.rows


def _function(entry: Entry) -> Hashable:
    return (entry.parsed.prefix, entry.parsed.name) if entry.parsed is not None else None


def _kind(placed: tuple[int, Item]) -> Hashable:
    place, item = placed
    return place, item.suffix, item.kind, item.type


def _joined(rows: Sequence[Row], beside: _Places) -> list[Row]:
    taken = set(beside.values())
    return [
        _both(row, rows[beside[place]]) if place in beside else row
        for place, row in enumerate(rows)
        if place not in taken
    ]


def _both(row: Row, other: Row) -> Row:
    if row.places[2] is other.places[2]:
        return Row(row.places[0], other.places[1], tables=row.places[2], state=row.state)
    return Row(row.target, other.golden, state=row.state)


def _beside(target: Entry, golden: Entry, frameworks: tuple[str, str], several: bool) -> Iterator[tuple[str, str]]:
    """Names of plain items of the target → of the golden."""
    for each in same_arguments(target, golden, frameworks, several=several):
        mine, other = each.target.items, each.golden.items
        if len(mine) == len(other) and not any(map(_is_tensor, (*mine, *other))):
            yield from ((item.name, its.name) for item, its in zip(mine, other, strict=True))


def _is_tensor(item: Item) -> bool:
    return item.kind == "tensor"


def _is_forward_function(entry: Entry) -> bool:
    return is_function(entry.parsed) and entry.parsed is not None and entry.parsed.direction == FORWARD
