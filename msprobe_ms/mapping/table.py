"""Which entry of the target stands beside which of the golden.

Modules first: every target module gets one golden module, decided by the most specific thing said about it (layer
mapping, cell mapping, its own dotted name). Then calls: the k-th with the k-th, the backward with its forward's twin.
APIs pair by name between dumps of one framework; where names may not mean the same (two frameworks, renamed modules)
they pair inside their enclosing module's call, k-th of that API with k-th, and only when both sides made equally many.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from msprobe_ms.mapping.align import align
from msprobe_ms.mapping.data import DataPairs
from msprobe_ms.mapping.files import Mappings
from msprobe_ms.mapping.kernels import is_kernel, pair_kernels
from msprobe_ms.mapping.modules import Module, destinations, modules_of
from msprobe_ms.names import DEBUG, FORWARD, EntryName, parse_entry
from msprobe_ms.store.model import Dump, Entry


@dataclass(frozen=True, slots=True)
class Twin:
    """The golden entry of a target entry and what paired them: ``data``, ``layer``, ``cell`` or ``name``."""

    golden: str
    how: str


class _Side:
    """One dump, indexed by what its names mean.

    ``by_meaning``  call → entry name
    ``forwards``    backward or parameter gradient entry → its forward entry, where the dump holds it
    """

    def __init__(self, dump: Dump) -> None:
        self.entries = dump.entries
        self.by_meaning = {_meaning(entry.parsed): name for name, entry in self.entries.items() if entry.parsed}
        self.forwards: dict[str, str] = {}
        for name, entry in self.entries.items():
            if entry.parsed is None or entry.parsed.direction in (FORWARD, DEBUG):
                continue
            if forward := self.by_meaning.get(_meaning(entry.parsed.in_direction(FORWARD))):
                self.forwards[name] = forward


def pair_entries(
    target: Dump, golden: Dump, mappings: Mappings, said: DataPairs, *, fuzzy: bool = False
) -> dict[str, Twin]:
    """Target entry name → its golden twin, for every entry that has one; no golden entry is given twice."""
    return _Pairing(target, golden, mappings, said, fuzzy).run()


class _Pairing:
    def __init__(self, target: Dump, golden: Dump, mappings: Mappings, said: DataPairs, fuzzy: bool) -> None:
        self.ours, self.theirs, self.said, self.fuzzy = _Side(target), _Side(golden), said, fuzzy
        renamed = bool(mappings.layer or mappings.cell or mappings.automatic)
        self.scoped = renamed or (target.framework == "mindspore") != (golden.framework == "mindspore")
        self.destinations = destinations(modules_of(target), modules_of(golden), mappings)
        #: One of the dumps knows no parents (level L1): all APIs are in one scope.
        self.flat = not all(any(entry.parent for entry in dump.entries.values()) for dump in (target, golden))
        #: Both dumps record the network itself as a module; else its APIs are those outside of all modules.
        self.rooted = any(not path for path, _ in self.destinations)
        self.twins: dict[str, Twin] = {}
        self.claimed: dict[str, str] = {}
        #: Where a compiled graph takes part, the number of a kernel does not say which it is.
        self.kernels = pair_kernels(target, golden)

    def run(self) -> dict[str, Twin]:
        self._claim_all(self.said.entries, "data")
        self._claim_all(self.kernels, "name")
        leaders = [entry for entry in self.ours.entries.values() if entry.name not in self.ours.forwards]
        followers = [entry for entry in self.ours.entries.values() if entry.name in self.ours.forwards]
        if self.fuzzy:
            self._align(self._free(self.ours, leaders=True), self._free(self.theirs, leaders=True))
            self._follow(followers)
            self._align(self._free(self.ours, leaders=False), self._free(self.theirs, leaders=False))
        else:
            self._by_call(leaders)
            self._follow(followers)
            self._by_call([entry for entry in followers if self.ours.forwards[entry.name] not in self.twins])
            if self.scoped:
                self._by_scope()
                self._follow(followers)
        self._claim_all(self.said.fallback, "data")
        return self.twins

    # One entry at a time: claims.

    def _claim(self, name: str, golden: str | None, how: str) -> None:
        if golden is not None and name not in self.twins and golden not in self.claimed:
            self.twins[name] = Twin(golden, how)
            self.claimed[golden] = name

    def _claim_all(self, pairs: dict[str, str], how: str) -> None:
        for name, golden in pairs.items():
            self._claim(name, golden, how)

    def _how(self, parsed: EntryName | None) -> str:
        found = self.destinations.get((parsed.name, parsed.class_name)) if parsed and parsed.is_module else None
        return found.how if found else "name"

    # Exact calls.

    def _by_call(self, entries: list[Entry]) -> None:
        """The same call of the same module, or the same name; APIs in scoped mode wait for ``_by_scope``."""
        for entry in entries:
            parsed = entry.parsed
            if self.kernels and is_kernel(entry):
                continue
            if parsed is None:
                self._claim(entry.name, entry.name if entry.name in self.theirs.entries else None, "name")
            elif parsed.is_module:
                if found := self.destinations.get((parsed.name, parsed.class_name)):
                    meaning = ("module", *found.module, parsed.direction, parsed.index or 0)
                    self._claim(entry.name, self.theirs.by_meaning.get(meaning), found.how)
            elif parsed.direction == DEBUG or not self.scoped:
                self._claim(entry.name, self.theirs.by_meaning.get(_meaning(parsed)), "name")

    def _follow(self, followers: list[Entry]) -> None:
        """A backward goes where its forward went."""
        for entry in followers:
            if self.kernels and is_kernel(entry):
                continue
            forward = self.twins.get(self.ours.forwards[entry.name])
            twin = self.theirs.entries[forward.golden].parsed if forward else None
            if forward and twin and entry.parsed:
                golden = self.theirs.by_meaning.get(_meaning(twin.in_direction(entry.parsed.direction)))
                self._claim(entry.name, golden, forward.how)

    def _by_scope(self) -> None:
        """APIs inside one call of one module: k-th with k-th when both sides called it equally often."""
        groups, golden_groups = self._scopes(self.ours, ours=True), self._scopes(self.theirs, ours=False)
        for key, entries in groups.items():
            others = golden_groups.get(key, [])
            if len(entries) == len(others):
                for entry, other in zip(_in_order(entries), _in_order(others), strict=True):
                    self._claim(entry.name, other.name, self._how(_parent(entry)))

    def _scopes(self, side: _Side, ours: bool) -> dict[Hashable, list[Entry]]:
        groups: dict[Hashable, list[Entry]] = {}
        for entry in side.entries.values():
            parsed = entry.parsed
            taken = self.twins if ours else self.claimed
            if parsed is None or parsed.is_module or parsed.direction == DEBUG or entry.name in taken:
                continue
            if entry.name not in side.forwards and (scope := self._scope(entry, ours)) is not None:
                groups.setdefault((scope, parsed.name, parsed.direction), []).append(entry)
        return groups

    def _scope(self, entry: Entry, ours: bool) -> Hashable | None:
        """The golden module call an API runs in: (path, class, call); () outside of all, None in an unpaired module."""
        parent = self._enclosing(entry)
        if parent is None:
            return ()
        call = parent.index or 0
        if not ours:
            return (parent.name, parent.class_name, call)
        twin = self.twins.get(entry.parent or "")
        golden = self.theirs.entries[twin.golden].parsed if twin else None
        if golden is not None:
            return (golden.name, golden.class_name, golden.index or 0)
        found = self.destinations.get((parent.name, parent.class_name))
        return (*found.module, call) if found else None

    # Fuzzy: call indices say nothing.

    def _free(self, side: _Side, leaders: bool) -> list[tuple[Hashable, Entry]]:
        """Entries not yet paired, in execution order, with the name that stays when call indices are dropped."""
        ours = side is self.ours
        taken = self.twins if ours else self.claimed
        keyed: Iterator[tuple[Hashable | None, Entry]] = (
            (self._free_key(entry, ours), entry)
            for entry in side.entries.values()
            if entry.name not in taken and (entry.name not in side.forwards) == leaders
        )
        return [(key, entry) for key, entry in keyed if key is not None]

    def _free_key(self, entry: Entry, ours: bool) -> Hashable | None:
        parsed = entry.parsed
        if self.kernels and is_kernel(entry):
            return None
        if parsed is None:
            return entry.name
        if parsed.is_module:
            module = self._golden_module((parsed.name, parsed.class_name), ours)
            return (module, parsed.direction) if module else None
        if parsed.direction == DEBUG or not self.scoped:
            return (parsed.prefix, parsed.name, parsed.direction)
        parent = self._enclosing(entry)
        if parent is None:
            return ((), parsed.name, parsed.direction)
        module = self._golden_module((parent.name, parent.class_name), ours)
        return (module, parsed.name, parsed.direction) if module else None

    def _golden_module(self, module: Module, ours: bool) -> Module | None:
        if not ours:
            return module
        found = self.destinations.get(module)
        return found.module if found else None

    def _align(self, ours: list[tuple[Hashable, Entry]], theirs: list[tuple[Hashable, Entry]]) -> None:
        for place, other in align([key for key, _ in ours], [key for key, _ in theirs]):
            entry = ours[place][1]
            module = entry.parsed if entry.parsed and entry.parsed.is_module else _parent(entry)
            self._claim(entry.name, theirs[other][1].name, self._how(module))

    def _enclosing(self, entry: Entry) -> EntryName | None:
        """The module call around an API; None outside of all, and where the two dumps cannot both tell."""
        parent = _parent(entry)
        return None if self.flat or (parent and not parent.name and not self.rooted) else parent


def _parent(entry: Entry) -> EntryName | None:
    return parse_entry(entry.parent) if entry.parent else None


def _meaning(parsed: EntryName) -> Hashable:
    """What an entry is, spelled the same for Cell and Module and for gradients with and without a call index."""
    if parsed.is_module:
        return ("module", parsed.name, parsed.class_name, parsed.direction, parsed.index or 0)
    return (parsed.prefix, parsed.name, parsed.direction, parsed.index)


def _in_order(entries: list[Entry]) -> list[Entry]:
    """By call index where one counter numbered them all, else as executed."""
    names = {(entry.parsed.prefix, entry.parsed.name) for entry in entries if entry.parsed}
    if len(names) > 1:
        return entries
    return sorted(entries, key=lambda entry: entry.parsed.index or 0 if entry.parsed else 0)
