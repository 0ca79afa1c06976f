"""Two dumps → pairs of entries with their rows: every entry and every item of both sides, beside its twin or alone."""

from __future__ import annotations

from msprobe_ms.compare.model import Pair, Row
from msprobe_ms.mapping.data import DataPairs, resolve_data
from msprobe_ms.mapping.files import Mappings
from msprobe_ms.mapping.items import pair_items
from msprobe_ms.mapping.table import pair_entries
from msprobe_ms.store.model import Dump, Entry


def pair(target: Dump, golden: Dump, mappings: Mappings, *, fuzzy: bool = False) -> list[Pair]:
    """The target's entries in execution order, then the golden entries nobody claimed (``target`` None).

    ``fuzzy`` ignores call indices: calls of one name pair in execution order. What is said about an entry by the data
    mapping comes before the layer mapping, that before the cell mapping, that before its own name.
    """
    said = resolve_data(mappings.data, target, golden)
    twins = pair_entries(target, golden, mappings, said, fuzzy=fuzzy)
    placed = {twin.name for twin in said.items.values()}
    pairs = []
    for entry in target.entries.values():
        twin = twins.get(entry.name)
        if twin is not None:
            other = golden.entries[twin.golden]
            pairs.append(Pair(entry, other, _rows(entry, other, said, placed), twin.how))
        else:
            pairs.append(_alone(entry, golden, said))
    claimed = {twin.golden for twin in twins.values()}
    for entry in golden.entries.values():
        if entry.name not in claimed:
            rows = [Row(None, item) for item in entry.items if item.name not in placed]
            if rows or not entry.items:
                pairs.append(Pair(None, entry, rows))
    return pairs


def _rows(entry: Entry, twin: Entry, said: DataPairs, placed: set[str]) -> list[Row]:
    """Items the data mapping places stand where it says; the others pair among themselves."""
    if not placed:
        return [Row(*both) for both in pair_items(entry.items, twin.items)]
    free = [item for item in entry.items if item.name not in said.items]
    others = [item for item in twin.items if item.name not in placed]
    paired = iter(pair_items(free, others))
    rows = [Row(item, said.items[item.name]) if item.name in said.items else Row(*next(paired)) for item in entry.items]
    return rows + [Row(*surplus) for surplus in paired]


def _alone(entry: Entry, golden: Dump, said: DataPairs) -> Pair:
    """An entry without a twin; single items may still stand beside items the data mapping names."""
    rows = [Row(item, said.items.get(item.name)) for item in entry.items]
    other = golden.entries.get(said.fallback.get(entry.name, ""))
    return Pair(entry, other, rows, "data" if other else "")
