"""Match entries of two dumps: keys under which both sides name the same call, and which entries were matched so far."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from typing import NamedTuple

from msprobe_ms.comparison.pairing.rules.api import ApiRule
from msprobe_ms.comparison.terms import GOLDEN, TARGET, PairedBy, Side
from msprobe_ms.dump.dialects import KERNEL, same_apis
from msprobe_ms.dump.model import Dump, Entry
from msprobe_ms.dump.names import DEBUG, FORWARD, OPTIMIZER, PARAMETER, EntryName

#: How a number is never written, which reads as another one.
_OTHER_NUMBER = re.compile(r"\.0\d")
#: Prefixes of entries that are no calls of functions.
_OF_OTHERS = frozenset((KERNEL, PARAMETER, OPTIMIZER))


def key_of(parsed: EntryName) -> Hashable:
    """Return the key of an entry: the same for Cell and Module, and for gradients with and without a call index."""
    if parsed.is_module:
        return ("module", parsed.name, parsed.class_name, parsed.direction, parsed.index or 0)
    return (parsed.prefix, parsed.name, parsed.direction, parsed.index)


def functions_of_equal_names(target: Dump, golden: Dump) -> bool:
    """Whether both dumps hold the same calls of functions, outside of all modules and graphs, and nothing else.

    Then each name says which call it is: there are no two of them for one key.
    """
    if not same_apis(target.framework, golden.framework) or target.entries.keys() != golden.entries.keys():
        return False
    names = "\n".join(target.entries)
    return (
        names.isascii()
        and _OTHER_NUMBER.search(names) is None
        and all(map(_is_plain_function, target.entries.values()))
        and all(map(_is_plain_function, golden.entries.values()))
    )


def _is_plain_function(entry: Entry) -> bool:
    parsed = entry.parsed
    return not (
        parsed is None
        or parsed.is_module
        or parsed.direction == DEBUG
        or parsed.prefix in _OF_OTHERS
        or entry.parent
        or entry.scope
        or entry.recomputed
    )


class KeyedEntries:
    """The entries of one dump by their keys.

    ``by_key``    key → entry name
    ``forwards``  backward or parameter gradient entry → its forward entry, where the dump holds it
    """

    def __init__(self, dump: Dump, side: Side) -> None:
        self.side = side
        self.entries = dump.entries
        self.by_key = {key_of(entry.parsed): name for name, entry in self.entries.items() if entry.parsed}
        self.forwards: dict[str, str] = {}
        for name, entry in self.entries.items():
            if entry.parsed is None or entry.parsed.direction in (FORWARD, DEBUG):
                continue
            if forward := self.by_key.get(key_of(entry.parsed.in_direction(FORWARD))):
                self.forwards[name] = forward


class Match(NamedTuple):
    """The golden entry of a target entry and what paired them.

    ``targets``  target entries that are the golden one together, in the order of the forward; each has this match
    ``goldens``  golden entries that are this target entry together; the last is ``golden``
    ``rule``     the user's rule about this API, which may say which items belong together
    """

    golden: str
    how: PairedBy
    targets: tuple[str, ...] = ()
    goldens: tuple[str, ...] = ()
    rule: ApiRule | None = None

    @property
    def all_golden(self) -> tuple[str, ...]:
        return self.goldens or (self.golden,)


class Matches:
    """Matched entries: at most one golden entry for each target entry, and none given twice.

    The first match counts; a later one that asks for what is taken is ignored.

    ``by_target``  target entry name → its match
    ``unmatched``  names of target entries that were said to have no counterpart
    ``rule``       (target entry, golden entry) → the user's rule that speaks of both; None without rules
    """

    def __init__(self, unmatched: Container[str], rule: Callable[[str, str], ApiRule | None] | None) -> None:
        self.by_target: dict[str, Match] = {}
        self._goldens: set[str] = set()
        self._unmatched, self._rule = unmatched, rule

    def is_taken(self, name: str, side: Side) -> bool:
        """Return whether an entry is matched, or was said to have no counterpart."""
        if side is GOLDEN:
            return name in self._goldens
        return name in self.by_target or name in self._unmatched

    def add(self, name: str, golden: str | None, how: PairedBy) -> None:
        """Match two entries; nothing happens where one of them is taken or ``golden`` is None."""
        if golden is not None and not (self.is_taken(name, TARGET) or golden in self._goldens):
            self.by_target[name] = Match(golden, how, rule=self._rule and self._rule(name, golden))
            self._goldens.add(golden)

    def add_all(self, pairs: Mapping[str, str], how: PairedBy) -> None:
        """Match each target entry of ``pairs`` with its golden one."""
        for name, golden in pairs.items():
            self.add(name, golden, how)

    def add_group(self, targets: Sequence[str], goldens: Sequence[str], how: PairedBy) -> None:
        """Match several entries of one side with one of the other; both in the order of the forward calls."""
        taken = any(self.is_taken(name, TARGET) for name in targets) or not self._goldens.isdisjoint(goldens)
        if targets and goldens and not taken:
            match = Match(goldens[-1], how, tuple(targets), tuple(goldens) if len(goldens) > 1 else ())
            self.by_target.update(dict.fromkeys(targets, match))
            self._goldens.update(goldens)
