"""Match the entries of two dumps: which entry of the target stands beside which of the golden.

Modules first: every target module gets one golden module, decided by the most specific thing said about it (layer
mapping, cell mapping, its own dotted name). Then calls: the k-th with the k-th, a backward with the counterpart of its
forward. APIs pair by name between dumps of one framework; where names may not mean the same (two frameworks, renamed
modules, one side that calls more) they pair inside their enclosing module's call by what they do (``calls``). An API
mapping says more of both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator

from msprobe_ms.comparison.pairing.align import align, align_by_marks
from msprobe_ms.comparison.pairing.calls import Scope, pair_calls
from msprobe_ms.comparison.pairing.fusions import fused_modules
from msprobe_ms.comparison.pairing.kernels import is_kernel, pair_kernels
from msprobe_ms.comparison.pairing.matches import KeyedEntries, Match, Matches, functions_of_equal_names, key_of
from msprobe_ms.comparison.pairing.modules import Module, destinations, modules_of, scope_of, scopes_of_unpaired
from msprobe_ms.comparison.pairing.operations import OPERATION, ApiNames, output_statistics
from msprobe_ms.comparison.pairing.rules.api import ApiRule, rules_by_side
from msprobe_ms.comparison.pairing.rules.data import DataPairs
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.pairing.updates import pair_updates
from msprobe_ms.comparison.terms import GOLDEN, TARGET, PairedBy, Side
from msprobe_ms.dump.dialects import same_apis
from msprobe_ms.dump.model import Dump, Entry
from msprobe_ms.dump.names import BACKWARD, DEBUG, FORWARD, EntryName, is_function, is_update, parse_entry


def pair_entries(
    target: Dump, golden: Dump, mappings: Mappings, said: DataPairs, *, fuzzy: bool = False
) -> dict[str, Match]:
    """Return the match of every target entry that has one, by the entry's name; no golden entry is given twice."""
    unsaid = not fuzzy and said == DataPairs() and mappings == Mappings()
    if unsaid and functions_of_equal_names(target, golden):
        return {name: Match(name, PairedBy.NAME) for name in target.entries}
    return _Pairing(target, golden, mappings, said, fuzzy).run()


class _Pairing:
    def __init__(self, target: Dump, golden: Dump, mappings: Mappings, said: DataPairs, fuzzy: bool) -> None:
        self.target, self.golden = KeyedEntries(target, TARGET), KeyedEntries(golden, GOLDEN)
        self.said, self.fuzzy = said, fuzzy
        renamed = bool(mappings.layer or mappings.cell or mappings.automatic)
        self.scoped = renamed or not same_apis(target.framework, golden.framework) or _call_otherwise(target, golden)
        #: An API mapping, if only of the built-in table: what no scope pairs, pairs wherever it was called.
        self.everywhere = mappings.api is not None
        ours, theirs = rules_by_side(mappings.api or (), target, golden)
        self.api_names = ApiNames(target, ours), ApiNames(golden, theirs)
        self.destinations = destinations(modules_of(target), modules_of(golden), mappings)
        #: Modules of both sides that are several of the other side: what is called in them has no counterparts.
        self.fused = fused_modules(self.destinations)
        #: One of the dumps knows no parents (level L1): all APIs are in one scope.
        self.flat = not all(any(entry.parent for entry in dump.entries.values()) for dump in (target, golden))
        #: Both dumps record the network itself as a module; else its APIs are those outside of all modules.
        self.rooted = any(not path for path, _ in self.destinations)
        self.matches = Matches(said.alone, _rule_of_both(self.api_names, target, golden) if ours and theirs else None)
        self.paired_modules = set(self.destinations), {found.module for found in self.destinations.values()}
        #: Module calls without a counterpart → the call of the other side that encloses what they enclose; by side.
        self.unpaired_scopes: tuple[dict[str, str | None], dict[str, str | None]] = {}, {}
        #: Where a compiled graph takes part, the number of a kernel does not say which it is.
        self.kernels = pair_kernels(target, golden)

    def run(self) -> dict[str, Match]:
        self.matches.add_all(self.said.entries, PairedBy.DATA)
        for ours, theirs in self.said.groups:
            self.matches.add_group(ours, theirs, PairedBy.GROUP)
        self.matches.add_all(self.kernels, PairedBy.NAME)
        self.matches.add_all(pair_updates(self.target.entries, self.golden.entries, self.destinations), PairedBy.NAME)
        leaders = [
            entry
            for entry in self.target.entries.values()
            if entry.name not in self.target.forwards and not is_update(entry.parsed)
        ]
        followers = [entry for entry in self.target.entries.values() if entry.name in self.target.forwards]
        if self.fuzzy:
            if self.scoped:
                # Which module's call it is says more of a function than what runs around it.
                self._align(*(self._free(dump, leaders=True, functions=False) for dump in (self.target, self.golden)))
                self._by_scope(self._scope)
            self._align(self._free(self.target, leaders=True), self._free(self.golden, leaders=True))
            self._follow(followers)
            self._align(self._free(self.target, leaders=False), self._free(self.golden, leaders=False))
        else:
            settled = self._by_outputs()
            self._by_call([entry for entry in leaders if entry.name not in settled])
            self._follow(followers)
            matched = self.matches.by_target
            self._by_call([entry for entry in followers if self.target.forwards[entry.name] not in matched])
        if self.scoped or self.everywhere:
            self._by_scope(self._scope)
            if self.everywhere:
                self._by_scope(_whole_step)
            self._follow(followers)
        self.matches.add_all(self.said.fallback, PairedBy.DATA)
        return self.matches.by_target

    def _how(self, parsed: EntryName | None) -> PairedBy:
        found = self.destinations.get((parsed.name, parsed.class_name)) if parsed and parsed.is_module else None
        return found.how if found else PairedBy.NAME

    # Exact calls.

    def _by_outputs(self) -> set[str]:
        """Names called more often on one side, where what the calls give out tells which is which; their calls."""
        ours, theirs = self._forwards(self.target), self._forwards(self.golden)
        settled: set[str] = set()
        for key, calls in ours.items():
            others = theirs.get(key, [])
            if len(calls) == len(others) or not others or any(call.recomputed for call in (*calls, *others)):
                continue
            marks = ([(None, output_statistics(call)) for call in side] for side in (calls, others))
            if pairs := align_by_marks(*marks):
                settled.update(call.name for call in calls)
                for place, other in pairs:
                    call = calls[place]
                    self.matches.add(call.name, others[other].name, self._how(call.parsed))
        return settled

    def _forwards(self, dump: KeyedEntries) -> dict[Hashable, list[Entry]]:
        """Forward calls that pair by number, by what they are calls of."""
        groups: dict[Hashable, list[Entry]] = {}
        for entry in dump.entries.values():
            parsed = entry.parsed
            if parsed is None or parsed.direction != FORWARD or (self.kernels and is_kernel(entry)):
                continue
            if is_update(parsed):
                continue
            key: Hashable | None = None
            if parsed.is_module:
                key = self._golden_module((parsed.name, parsed.class_name), dump.side)
            elif not (self.scoped or self.api_names[dump.side].rule(entry)):
                key = (parsed.prefix, parsed.name, "")
            if key is not None and not self.matches.is_taken(entry.name, dump.side):
                groups.setdefault(key, []).append(entry)
        return groups

    def _by_call(self, entries: list[Entry]) -> None:
        """The same call of the same module, or the same name; APIs in scoped mode wait for ``_by_scope``."""
        for entry in entries:
            parsed = entry.parsed
            if self.kernels and is_kernel(entry):
                continue
            if parsed is None:
                self.matches.add(entry.name, entry.name if entry.name in self.golden.entries else None, PairedBy.NAME)
            elif parsed.is_module:
                if found := self.destinations.get((parsed.name, parsed.class_name)):
                    key = ("module", *found.module, parsed.direction, parsed.index or 0)
                    self.matches.add(entry.name, self.golden.by_key.get(key), found.how)
            elif parsed.direction == DEBUG or not (self.scoped or self.api_names[TARGET].rule(entry)):
                self.matches.add(entry.name, self.golden.by_key.get(key_of(parsed)), PairedBy.NAME)

    def _follow(self, followers: list[Entry]) -> None:
        """A backward goes where its forward went."""
        for entry in followers:
            if self.kernels and is_kernel(entry):
                continue
            forward = self.matches.by_target.get(self.target.forwards[entry.name])
            if forward and forward.targets:
                self._follow_group(forward)
                continue
            counterpart = self.golden.entries[forward.golden].parsed if forward else None
            if forward and counterpart and entry.parsed:
                golden = self.golden.by_key.get(key_of(counterpart.in_direction(entry.parsed.direction)))
                self.matches.add(entry.name, golden, forward.how)

    def _follow_group(self, forward: Match) -> None:
        """The backwards of a group, as far as there are any, beside its counterpart's."""
        ours, theirs = (
            [
                name
                for parsed in (dump.entries[name].parsed for name in names)
                if parsed and (name := dump.by_key.get(key_of(parsed.in_direction(BACKWARD))))
            ]
            for dump, names in ((self.target, forward.targets), (self.golden, forward.all_golden))
        )
        self.matches.add_group(ours, theirs, forward.how)

    def _by_scope(self, scope_of: Callable[[Entry, Side], Hashable | None]) -> None:
        """APIs inside one call of one module, or all together at level L1."""
        back = {golden: name for name, match in self.matches.by_target.items() for golden in match.all_golden}
        forth = {name: match.golden for name, match in self.matches.by_target.items()}
        self.unpaired_scopes = (
            scopes_of_unpaired(self.target.entries, self.golden.entries, forth, rooted=self.rooted),
            scopes_of_unpaired(self.golden.entries, self.target.entries, back, rooted=self.rooted),
        )
        others = self._scopes(self.golden, scope_of)
        for (scope, direction), calls in self._scopes(self.target, scope_of).items():
            if (scope, direction) not in others:
                continue
            groups = direction == FORWARD
            found_here = pair_calls(
                calls,
                others[scope, direction],
                groups=groups,
                whole_module=groups and bool(scope),
                other_sizes=self.flat,
            )
            for found in found_here:
                if found.how == PairedBy.GROUP:
                    ours, theirs = ([each.name for each in side] for side in (found.target, found.golden))
                    self.matches.add_group(ours, theirs, found.how)
                else:
                    entry, other = found.target[0], found.golden[0]
                    how = found.how or self._api_how(entry, self._how(_parent(entry)))
                    self.matches.add(entry.name, other.name, how)

    def _api_how(self, entry: Entry, how: PairedBy) -> PairedBy:
        return PairedBy.API if self.api_names[TARGET].rule(entry) else how

    def _scopes(
        self, dump: KeyedEntries, scope_of: Callable[[Entry, Side], Hashable | None]
    ) -> dict[tuple[Hashable, str], Scope]:
        """APIs by the scope they were called in and their direction."""
        scopes: dict[tuple[Hashable, str], Scope] = {}
        for entry in dump.entries.values():
            parsed = entry.parsed
            if parsed is None or parsed.is_module or parsed.direction == DEBUG or entry.name in dump.forwards:
                continue
            if is_update(parsed):
                continue
            if self._in_fused(entry, dump.side):
                continue
            if (scope := scope_of(entry, dump.side)) is not None:
                names = None if self.matches.is_taken(entry.name, dump.side) else self.api_names[dump.side].of(entry)
                scopes.setdefault((scope, parsed.direction), Scope()).hold(entry, names)
        return scopes

    def _scope(self, entry: Entry, side: Side) -> Hashable | None:
        """The golden module call an API runs in: (path, class, call); () outside of all, None in an unpaired module."""
        parent = self._enclosing(entry)
        if parent is None:
            return ()
        call, scopes = parent.index or 0, self.unpaired_scopes[side]
        if entry.parent in scopes and (parent.name, parent.class_name) not in self.paired_modules[side]:
            scope = scopes[entry.parent]
            return scope_of(scope) if side is TARGET or scope is None else self._scope_of_match(scope)
        if side is GOLDEN:
            return (parent.name, parent.class_name, call)
        match = self.matches.by_target.get(entry.parent or "")
        golden = self.golden.entries[match.golden].parsed if match else None
        if golden is not None:
            return (golden.name, golden.class_name, golden.index or 0)
        found = self.destinations.get((parent.name, parent.class_name))
        return (*found.module, call) if found else None

    def _scope_of_match(self, name: str) -> Hashable | None:
        """The scope of the golden call that stands beside a target one."""
        match = self.matches.by_target.get(name)
        return scope_of(match.golden) if match else None

    # Fuzzy: call indices say nothing.

    def _free(self, dump: KeyedEntries, *, leaders: bool, functions: bool = True) -> list[tuple[Hashable, Entry]]:
        """Entries not yet paired, in execution order, with the name that stays when call indices are dropped."""
        keyed: Iterator[tuple[Hashable | None, Entry]] = (
            (self._free_key(entry, dump.side), entry)
            for entry in dump.entries.values()
            if not self.matches.is_taken(entry.name, dump.side)
            and not is_update(entry.parsed)
            and (entry.name not in dump.forwards) == leaders
            and (functions or not is_function(entry.parsed))
            and not (is_function(entry.parsed) and self._in_fused(entry, dump.side))
        )
        return [(key, entry) for key, entry in keyed if key is not None]

    def _free_key(self, entry: Entry, side: Side) -> Hashable | None:
        parsed = entry.parsed
        if self.kernels and is_kernel(entry):
            return None
        if parsed is None:
            return entry.name
        if parsed.is_module:
            module = self._golden_module((parsed.name, parsed.class_name), side)
            return (module, parsed.direction) if module else None
        rule = self.api_names[side].rule(entry)
        if parsed.direction == DEBUG or not self.scoped:
            return (rule.word, parsed.direction) if rule else (parsed.prefix, parsed.name, parsed.direction)
        word = self.api_names[side].of(entry)[OPERATION]
        parent = self._enclosing(entry)
        if parent is None:
            return ((), word, parsed.direction)
        module = self._golden_module((parent.name, parent.class_name), side)
        return (module, word, parsed.direction) if module else None

    def _in_fused(self, entry: Entry, side: Side) -> bool:
        parent = _parent(entry) if self.fused[side] else None
        return parent is not None and (parent.name, parent.class_name) in self.fused[side]

    def _golden_module(self, module: Module, side: Side) -> Module | None:
        if side is GOLDEN:
            return module
        found = self.destinations.get(module)
        return found.module if found else None

    def _align(self, ours: list[tuple[Hashable, Entry]], theirs: list[tuple[Hashable, Entry]]) -> None:
        for place, other in align([key for key, _ in ours], [key for key, _ in theirs]):
            entry = ours[place][1]
            module = entry.parsed if entry.parsed and entry.parsed.is_module else _parent(entry)
            self.matches.add(entry.name, theirs[other][1].name, self._api_how(entry, self._how(module)))

    def _enclosing(self, entry: Entry) -> EntryName | None:
        """The module call around an API; None outside of all, and where the two dumps cannot both tell."""
        parent = _parent(entry)
        return None if self.flat or (parent and not parent.name and not self.rooted) else parent


def _rule_of_both(names: tuple[ApiNames, ApiNames], target: Dump, golden: Dump) -> Callable[[str, str], ApiRule | None]:
    """What tells the rule that speaks of a target entry and of a golden one."""

    def rule(name: str, other: str) -> ApiRule | None:
        ours, theirs = names[TARGET].rule(target.entries[name]), names[GOLDEN].rule(golden.entries[other])
        return ours if ours and theirs and ours.word == theirs.word else None

    return rule


def _parent(entry: Entry) -> EntryName | None:
    return parse_entry(entry.parent) if entry.parent else None


def _call_otherwise(target: Dump, golden: Dump) -> bool:
    """Whether modules of one side call other functions, or some more often: then a number says little of a call."""
    ours, theirs = (
        Counter(
            (entry.parent, parsed.prefix, parsed.name)
            for entry in dump.entries.values()
            if (parsed := entry.parsed) is not None
            and is_function(parsed)
            and parsed.direction == FORWARD
            and entry.parent
        )
        for dump in (target, golden)
    )
    return bool(ours and theirs) and ours != theirs


def _whole_step(entry: Entry, side: Side) -> Hashable:
    """One scope for all."""
    return ()
