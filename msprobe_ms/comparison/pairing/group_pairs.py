"""Rows of several entries of one side beside one of the other, and of APIs whose arguments stand in other places."""

from __future__ import annotations

from collections.abc import Sequence

from msprobe_ms.comparison.model import Pair, Row
from msprobe_ms.comparison.pairing.call_groups import pair_tensors
from msprobe_ms.comparison.pairing.items import pair_items
from msprobe_ms.comparison.pairing.matches import Twin
from msprobe_ms.comparison.pairing.rules.data import DataPairs
from msprobe_ms.dump.columns import ItemSlice, ItemTable
from msprobe_ms.dump.model import Dump, Entry, Item
from msprobe_ms.dump.names import is_function


def is_spelled_differently(entry: Entry, other: Entry, twin: Twin) -> bool:
    """Whether both are APIs of other names, whose arguments may stand in other places, and no rule says in which."""
    names = (entry.parsed, other.parsed)
    if not all(map(is_function, names)) or (twin.rule is not None and twin.rule.items):
        return False
    return names[0].name != names[1].name  # type: ignore[union-attr]


def pair_group(twin: Twin, entry: Entry, target: Dump, golden: Dump, said: DataPairs, placed: set[str]) -> Pair:
    """One pair for all entries of a group, which stands where the last of its forward calls does.

    Items of which the data mapping speaks stand where it says; ``placed`` are the golden ones.
    """
    ours = [target.entries[name] for name in twin.ours or (entry.name,)]
    theirs = [golden.entries[name] for name in twin.all_golden]
    beside = {name: other for name, other in _beside(ours, theirs).items() if other not in placed}
    mine, others = _references(ours), _references(theirs)
    tables = _tables(ours, theirs)
    rows = [
        Row(item, said.items[name] if name in said.items else others.get(beside.get(name, "")), tables=tables)
        for name, item in mine.items()
    ]
    used = placed | set(beside.values())
    rows += [Row(None, item, tables=tables) for name, item in others.items() if name not in used]
    return Pair(ours[-1], theirs[-1], rows, twin.how)


def _beside(ours: Sequence[Entry], theirs: Sequence[Entry]) -> dict[str, str]:
    """Names of items of the target → of the golden."""
    if len(theirs) == 1:
        beside = list(pair_tensors(ours, theirs[0]))
    else:
        beside = [(item, other) for other, item in pair_tensors(theirs, ours[0])]
    if len(ours) == len(theirs) == 1 and all(item.suffix == other.suffix for item, other in beside):
        # Their arguments are in the same places, so what else stands in one place is the same argument.
        beside = [(item, other) for item, other in pair_items(ours[0].items, theirs[0].items) if item and other]
    return {item.name: other.name for item, other in beside}


def _references(entries: Sequence[Entry]) -> dict[str, Item | int]:
    """Items by name: as their numbers in the dump's columns, where it has such."""
    return {
        item.name: items.start + place if isinstance(items, ItemSlice) else item
        for items in (entry.items for entry in entries)
        for place, item in enumerate(items)
    }


def _tables(ours: Sequence[Entry], theirs: Sequence[Entry]) -> tuple[ItemTable, ItemTable] | None:
    mine, others = ours[0].items, theirs[0].items
    return (mine.table, others.table) if isinstance(mine, ItemSlice) and isinstance(others, ItemSlice) else None
