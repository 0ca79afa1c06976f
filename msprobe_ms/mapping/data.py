"""Data mapping: full names of the target beside full names of the golden, for items or whole entries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from msprobe_ms.log import logger
from msprobe_ms.store.model import Dump, Item

#: Names listed in one warning before the rest is only counted.
_LISTED = 10


@dataclass
class DataPairs:
    """What a data mapping says of two given dumps.

    ``entries``   target entry → golden entry: named as such, or every tensor of it is mapped item by item
    ``items``     target item name → golden item: these rows, whatever the entries do
    ``fallback``  target entry → golden entry of most of its mapped items, for an entry nothing else pairs
    """

    entries: dict[str, str] = field(default_factory=dict)
    items: dict[str, Item] = field(default_factory=dict)
    fallback: dict[str, str] = field(default_factory=dict)


def resolve_data(rules: Mapping[str, str], target: Dump, golden: Dump) -> DataPairs:
    """Look the names of a data mapping up; names neither dump knows are warned about once and skipped."""
    pairs = DataPairs()
    if not rules:
        return pairs
    ours, theirs = _items_by_name(target), _items_by_name(golden)
    unknown, refused = [], []
    claimed_entries: set[str] = set()
    claimed_items: set[str] = set()
    mapped: dict[str, Counter[str]] = {}
    for name, golden_name in rules.items():
        if name in target.entries and golden_name in golden.entries:
            if golden_name in claimed_entries:
                refused.append(f"{name}: {golden_name}")
                continue
            claimed_entries.add(golden_name)
            pairs.entries[name] = golden_name
        elif name in ours and golden_name in theirs:
            item, twin = ours[name], theirs[golden_name]
            if twin.name in claimed_items:
                refused.append(f"{name}: {golden_name}")
                continue
            claimed_items.add(twin.name)
            pairs.items[item.name] = twin
            mapped.setdefault(item.entry, Counter())[twin.entry] += 1
        else:
            missing = _missing(name, "target", target, ours) + _missing(golden_name, "golden", golden, theirs)
            unknown.extend(missing or [f"{name}: {golden_name} (an entry beside an item)"])
    for entry, golden_entries in mapped.items():
        whole = all(item.name in pairs.items for item in target.entries[entry].items if item.kind == "tensor")
        twin_entry = golden_entries.most_common(1)[0][0]
        if whole and entry not in pairs.entries and twin_entry not in claimed_entries:
            claimed_entries.add(twin_entry)
            pairs.entries[entry] = twin_entry
        else:
            pairs.fallback[entry] = twin_entry
    if unknown:
        logger.warning("data mapping: %d names are not in the dump and skipped: %s", len(unknown), listed(unknown))
    if refused:
        logger.warning("data mapping: the golden name is taken by an earlier line, skipped: %s", listed(refused))
    return pairs


def listed(names: Iterable[str], most: int = _LISTED) -> str:
    """``a, b, c and 12 more``: names for a message, bounded."""
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _items_by_name(dump: Dump) -> dict[str, Item]:
    """Items by full name, and by the file name of their tensor (1.1.0 named real data so: ``….kwargs.alpha``)."""
    found: dict[str, Item] = {}
    for entry in dump.entries.values():
        for item in entry.items:
            found.setdefault(item.name, item)
    for entry in dump.entries.values():
        for item in entry.items:
            if item.data_name:
                found.setdefault(item.data_name.rpartition(".")[0], item)
    return found


def _missing(name: str, side: str, dump: Dump, items: Mapping[str, Item]) -> list[str]:
    return [] if name in dump.entries or name in items else [f"{name} ({side})"]
