"""Where a node's tensors come from and go to, found by their figures: a dump does not record it."""

from __future__ import annotations

from collections.abc import Iterator

from msprobe_ms.store.model import Dump, Entry, Item

#: What tells one recorded tensor from another.
_Fingerprint = tuple[object, ...]


class Neighbours:
    """Producers and consumers of one dump's tensors; nothing is indexed, each question walks the dump once."""

    def __init__(self, dump: Dump) -> None:
        self._dump = dump
        self._entries = list(dump.entries.values())
        self._order = {entry.name: place for place, entry in enumerate(self._entries)}

    def producer(self, item: Item) -> Item | None:
        """The output that ``item`` was, of the nearest call before its own; None where none is recorded or it is
        constant, so that its figures tell nothing."""
        key = _fingerprint(item)
        place = self._order.get(item.entry)
        if key is None or place is None:
            return None
        for entry in reversed(self._entries[:place]):
            found = next((each for each in _outputs(entry) if _fingerprint(each) == key), None)
            if found is not None and not self._is_inside(entry, item.entry):
                return found
        return None

    def consumers(self, item: Item) -> list[Item]:
        """The inputs that ``item`` became, in execution order; of calls inside one another only the outermost."""
        key = _fingerprint(item)
        place = self._order.get(item.entry)
        if key is None or place is None:
            return []
        users = [
            next(each for each in entry.items if each.state == "input" and _fingerprint(each) == key)
            for entry in self._entries[place + 1 :]
            if any(each.state == "input" and _fingerprint(each) == key for each in entry.items)
        ]
        names = {user.entry for user in users}
        own = set(self._ancestors(item.entry))
        return [user for user in users if user.entry not in own and names.isdisjoint(self._ancestors(user.entry))]

    def _is_inside(self, entry: Entry, name: str) -> bool:
        return name in self._ancestors(entry.name)

    def _ancestors(self, name: str) -> Iterator[str]:
        seen = {name}
        entry = self._dump.entries.get(name)
        while entry is not None and entry.parent is not None and entry.parent not in seen:
            seen.add(entry.parent)
            yield entry.parent
            entry = self._dump.entries.get(entry.parent)


def _outputs(entry: Entry) -> Iterator[Item]:
    return (item for item in entry.items if item.state == "output")


def _fingerprint(item: Item) -> _Fingerprint | None:
    if item.kind != "tensor" or item.norm is None or item.maximum == item.minimum:
        return None
    return item.shape, item.maximum, item.minimum, item.mean, item.norm
