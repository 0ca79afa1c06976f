"""Pair the entries and items of two dumps: each stands in one row, beside its counterpart or alone."""

from __future__ import annotations

from collections.abc import Sequence

from msprobe_ms.comparison.model import Pair, Row, Tables
from msprobe_ms.comparison.pairing.calls import pair_tensors
from msprobe_ms.comparison.pairing.entries import pair_entries
from msprobe_ms.comparison.pairing.items import pair_items
from msprobe_ms.comparison.pairing.matches import Twin
from msprobe_ms.comparison.pairing.modules import Module, said_unmatched
from msprobe_ms.comparison.pairing.rules.api import ApiRule, split_listed
from msprobe_ms.comparison.pairing.rules.data import DataPairs, resolve_data
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.terms import PairedBy
from msprobe_ms.dump.columns import ItemSlice, ItemTable
from msprobe_ms.dump.model import Dump, Entry, Item
from msprobe_ms.dump.names import is_function


def pair(target: Dump, golden: Dump, mappings: Mappings, *, fuzzy: bool = False) -> list[Pair]:
    """The target's entries in execution order, then the golden entries nobody claimed (``target`` None).

    ``fuzzy`` ignores call indices: calls of one name pair in execution order. What is said about an entry by the data
    mapping comes before the layer mapping, that before the cell mapping, that before its own name; of an API the API
    mapping before the built-in table of what both frameworks call alike.
    """
    said = resolve_data(mappings.data, target, golden)
    twins = pair_entries(target, golden, mappings, said, fuzzy=fuzzy)
    placed, unmatched = said.placed, said_unmatched(target, mappings.layer)
    alike = _AlikePairs()
    pairs = []
    for entry in target.entries.values():
        twin = twins.get(entry.name)
        if twin is None:
            pairs.append(_alone(entry, golden, said, unmatched))
        elif twin.ours and entry.name != twin.ours[-1]:
            continue  # It has its rows beside the last of its group.
        elif twin.ours or is_spelled_differently(entry, golden.entries[twin.golden], twin):
            pairs.append(pair_group(twin, entry, target, golden, said, placed))
        else:
            other = golden.entries[twin.golden]
            plain = not said.items and twin.rule is None
            rows = alike.rows(entry, other) if plain else _placed_rows(entry, other, said, placed, twin.rule)
            pairs.append(Pair(entry, other, rows, twin.how))
    claimed = {name for twin in twins.values() for name in twin.all_golden}
    for entry in golden.entries.values():
        if entry.name not in claimed:
            rows = (
                _rows_alone(entry.items, ours=False)
                if not placed
                else [Row(None, item) for item in entry.items if item.name not in placed]
            )
            if rows or not entry.items:
                pairs.append(Pair(None, entry, rows))
    return pairs


#: What two entries are, their figures apart; the places of the items that stand beside each other in them, and states.
Layouts = tuple[bytes, bytes, str]
Places = tuple[tuple[int | None, int | None, str], ...]


class _AlikePairs:
    """Rows of paired entries. Calls of one function have items of one kind, which pair alike: that is done once."""

    def __init__(self) -> None:
        self._known: dict[Layouts, Places] = {}
        #: One value for all rows: each holds it.
        self._tables: Tables | None = None

    def rows(self, entry: Entry, twin: Entry) -> list[Row]:
        ours, theirs = entry.items, twin.items
        if not (isinstance(ours, ItemSlice) and isinstance(theirs, ItemSlice)):
            return [Row(*both) for both in pair_items(ours, theirs)]
        tables = self._tables
        if tables is None or tables[0] is not ours.table or tables[1] is not theirs.table:
            tables = self._tables = ours.table, theirs.table
        direction = entry.parsed.direction if entry.parsed else ""
        key = ours.layout, theirs.layout, direction
        places = self._known.get(key)
        if places is None:
            places = self._known[key] = _places(ours, theirs)
        rows = []
        for place, other, state in places:
            mine = None if place is None else ours.start + place
            golden = None if other is None else theirs.start + other
            if golden == mine:
                golden = mine  # one number, not two equal ones
            rows.append(Row(mine, golden, tables=tables, state=state))
        return rows


def _places(ours: ItemSlice, theirs: ItemSlice) -> Places:
    mine, others = list(ours), list(theirs)
    numbers = {id(item): number for items in (mine, others) for number, item in enumerate(items)}
    return tuple(
        (
            None if item is None else numbers[id(item)],
            None if twin is None else numbers[id(twin)],
            item.state if item is not None else twin.state if twin is not None else "",
        )
        for item, twin in pair_items(mine, others)
    )


def _placed_rows(entry: Entry, twin: Entry, said: DataPairs, placed: set[str], rule: ApiRule | None) -> list[Row]:
    """Items the data mapping places stand where it says, then those a rule names; the others pair among themselves."""
    free = [item for item in entry.items if item.name not in said.items]
    others = [item for item in twin.items if item.name not in placed]
    rows = [Row(item, said.items[item.name]) for item in entry.items if item.name in said.items]
    if rule is not None:
        named, free, others = split_listed(rule, free, others)
        rows += [Row(*both) for both in named]
    rows += [Row(*both) for both in pair_items(free, others)]
    order = {item.name: place for place, item in enumerate(entry.items)}
    return sorted(rows, key=lambda row: order[row.target.name] if row.target else len(order))


def _alone(entry: Entry, golden: Dump, said: DataPairs, unmatched: set[Module]) -> Pair:
    """An entry without a twin; single items may still stand beside items the data mapping names."""
    if not said.items:
        rows = _rows_alone(entry.items, ours=True)
    else:
        rows = [Row(item, said.items.get(item.name)) for item in entry.items]
    other = golden.entries.get(said.fallback.get(entry.name, ""))
    parsed = entry.parsed
    is_unmatched = parsed and parsed.is_module and (parsed.name, parsed.class_name) in unmatched
    how = PairedBy.UNMATCHED if is_unmatched else PairedBy.NOTHING
    return Pair(entry, other, rows, PairedBy.DATA if other else how)


def _rows_alone(items: Sequence[Item], *, ours: bool) -> list[Row]:
    """Rows of an entry that nothing stands beside."""
    if not isinstance(items, ItemSlice):
        return [Row(item, None) if ours else Row(None, item) for item in items]
    tables, numbers = (items.table, items.table), range(items.start, items.stop)
    return [Row(number, None, tables=tables) if ours else Row(None, number, tables=tables) for number in numbers]


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
