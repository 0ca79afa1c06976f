"""Where a node's tensors come from and go to, found by their figures: a dump does not record it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from msprobe_ms.comparison.origin.nodes import Fingerprint, fingerprint_of
from msprobe_ms.dump.model import Dump, Item, ancestors


class Neighbours:
    """Producers and consumers of some of a dump's tensors, found in one walk through it."""

    def __init__(self, dump: Dump, items: Iterable[Item]) -> None:
        self._dump = dump
        wanted = {key for item in items if (key := fingerprint_of(item)) is not None}
        self._order: dict[str, int] = {}
        #: Fingerprint → where it was given out, and where taken in: order of the entry, item.
        self._made: dict[Fingerprint, list[tuple[int, Item]]] = defaultdict(list)
        self._used: dict[Fingerprint, list[tuple[int, Item]]] = defaultdict(list)
        for order, entry in enumerate(dump.entries.values() if wanted else ()):
            self._order[entry.name] = order
            for item in entry.items:
                if item.state in ("input", "output") and (key := fingerprint_of(item)) in wanted and key is not None:
                    (self._used if item.state == "input" else self._made)[key].append((order, item))

    def producer(self, item: Item) -> Item | None:
        """The output that ``item`` was, of the nearest call before its own; None where none is recorded or it is
        constant, so that its figures tell nothing."""
        key, place = fingerprint_of(item), self._order.get(item.entry)
        if key is None or place is None:
            return None
        for order, made in reversed(self._made.get(key, ())):
            if order < place and item.entry not in ancestors(self._dump.entries, made.entry):
                return made
        return None

    def consumers(self, item: Item) -> list[Item]:
        """The inputs that ``item`` became, in execution order; of calls inside one another only the outermost."""
        key, place = fingerprint_of(item), self._order.get(item.entry)
        if key is None or place is None:
            return []
        by_entry: dict[str, Item] = {}
        for order, used in self._used.get(key, ()):
            if order > place:
                by_entry.setdefault(used.entry, used)
        own = set(ancestors(self._dump.entries, item.entry))
        return [
            user
            for name, user in by_entry.items()
            if name not in own and by_entry.keys().isdisjoint(ancestors(self._dump.entries, name))
        ]
