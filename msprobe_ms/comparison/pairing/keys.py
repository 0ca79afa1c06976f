"""What the entries of a dump are, spelled alike for both sides."""

from __future__ import annotations

from collections.abc import Hashable

from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.names import DEBUG, FORWARD, EntryName


def meaning_of(parsed: EntryName) -> Hashable:
    """What an entry is, spelled the same for Cell and Module and for gradients with and without a call index."""
    if parsed.is_module:
        return ("module", parsed.name, parsed.class_name, parsed.direction, parsed.index or 0)
    return (parsed.prefix, parsed.name, parsed.direction, parsed.index)


class Side:
    """One dump, indexed by what its names mean.

    ``by_meaning``  call → entry name
    ``forwards``    backward or parameter gradient entry → its forward entry, where the dump holds it
    """

    def __init__(self, dump: Dump) -> None:
        self.entries = dump.entries
        self.by_meaning = {meaning_of(entry.parsed): name for name, entry in self.entries.items() if entry.parsed}
        self.forwards: dict[str, str] = {}
        for name, entry in self.entries.items():
            if entry.parsed is None or entry.parsed.direction in (FORWARD, DEBUG):
                continue
            if forward := self.by_meaning.get(meaning_of(entry.parsed.in_direction(FORWARD))):
                self.forwards[name] = forward
