"""Record which entries of two dumps are matched: at most one golden entry for each target entry, none given twice."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from dataclasses import dataclass

from msprobe_ms.comparison.pairing.rules.api import ApiRule
from msprobe_ms.comparison.terms import PairedBy
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.names import DEBUG, FORWARD, EntryName


@dataclass(frozen=True, slots=True)
class Twin:
    """The golden entry of a target entry and what paired them.

    ``ours``    target entries that are the golden one together, as in the order of the forward; each has this twin
    ``theirs``  golden entries that are this target entry together; the last is ``golden``
    ``rule``    the user's rule about this API, which may say which items belong together
    """

    golden: str
    how: PairedBy
    ours: tuple[str, ...] = ()
    theirs: tuple[str, ...] = ()
    rule: ApiRule | None = None

    @property
    def all_golden(self) -> tuple[str, ...]:
        return self.theirs or (self.golden,)


class Claims:
    """The first claim counts; a later one that asks for what is taken is not heard.

    ``alone``  names of target entries that were said to have no twin
    ``rule``   (target entry, golden entry) → the user's rule that speaks of both
    """

    def __init__(self, alone: Container[str], rule: Callable[[str, str], ApiRule | None]) -> None:
        self.twins: dict[str, Twin] = {}
        self._claimed: set[str] = set()
        self._alone, self._rule = alone, rule

    def taken(self, name: str, ours: bool) -> bool:
        """Whether it is said what stands beside an entry of the target (``ours``) or the golden, were it nothing."""
        return name in self.twins or name in self._alone if ours else name in self._claimed

    def claim(self, name: str, golden: str | None, how: PairedBy) -> None:
        if golden is not None and not (self.taken(name, ours=True) or golden in self._claimed):
            self.twins[name] = Twin(golden, how, rule=self._rule(name, golden))
            self._claimed.add(golden)

    def claim_all(self, pairs: Mapping[str, str], how: PairedBy) -> None:
        for name, golden in pairs.items():
            self.claim(name, golden, how)

    def claim_group(self, ours: Sequence[str], theirs: Sequence[str], how: PairedBy) -> None:
        """Several entries of one side beside one of the other; both in the order of the forward calls."""
        taken = any(self.taken(name, ours=True) for name in ours) or not self._claimed.isdisjoint(theirs)
        if ours and theirs and not taken:
            twin = Twin(theirs[-1], how, tuple(ours), tuple(theirs) if len(theirs) > 1 else ())
            self.twins.update(dict.fromkeys(ours, twin))
            self._claimed.update(theirs)


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
