"""Which entry of the target stands beside which of the golden.

Modules first: every target module gets one golden module, decided by the most specific thing said about it (layer
mapping, cell mapping, its own dotted name). Then calls: the k-th with the k-th, the backward with its forward's twin.
APIs pair by name between dumps of one framework; where names may not mean the same (two frameworks, renamed modules)
they pair inside their enclosing module's call by what they do (``calls``). An API mapping says more of both.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator

from msprobe_ms.comparison.pairing.align import align, align_by_marks
from msprobe_ms.comparison.pairing.api_names import OPERATION, Words, figures_given
from msprobe_ms.comparison.pairing.calls import Scope, pair_calls
from msprobe_ms.comparison.pairing.fused_modules import fused_modules
from msprobe_ms.comparison.pairing.kernels import is_kernel, pair_kernels
from msprobe_ms.comparison.pairing.matches import Claims, Side, Twin, meaning_of
from msprobe_ms.comparison.pairing.modules import Module, destinations, modules_of
from msprobe_ms.comparison.pairing.rules.api import ApiRule, rules_by_side
from msprobe_ms.comparison.pairing.rules.data import DataPairs
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.pairing.unpaired_scopes import places_of_untwinned, scope_of
from msprobe_ms.comparison.terms import PairedBy
from msprobe_ms.dump.model import Dump, Entry
from msprobe_ms.dump.names import BACKWARD, DEBUG, FORWARD, EntryName, is_function, parse_entry


def pair_entries(
    target: Dump, golden: Dump, mappings: Mappings, said: DataPairs, *, fuzzy: bool = False
) -> dict[str, Twin]:
    """Target entry name → its golden twin, for every entry that has one; no golden entry is given twice."""
    return _Pairing(target, golden, mappings, said, fuzzy).run()


class _Pairing:
    def __init__(self, target: Dump, golden: Dump, mappings: Mappings, said: DataPairs, fuzzy: bool) -> None:
        self.ours, self.theirs, self.said, self.fuzzy = Side(target), Side(golden), said, fuzzy
        renamed = bool(mappings.layer or mappings.cell or mappings.automatic)
        self.scoped = renamed or (target.framework == "mindspore") != (golden.framework == "mindspore")
        #: An API mapping, if only of the built-in table: what no scope pairs, pairs wherever it was called.
        self.everywhere = mappings.api is not None
        ours, theirs = rules_by_side(mappings.api or (), target, golden)
        self.words = {True: Words(target, ours), False: Words(golden, theirs)}
        self.destinations = destinations(modules_of(target), modules_of(golden), mappings)
        #: Modules of both sides that are several of the other side: what is called in them has no twins.
        self.fused = fused_modules(self.destinations)
        #: One of the dumps knows no parents (level L1): all APIs are in one scope.
        self.flat = not all(any(entry.parent for entry in dump.entries.values()) for dump in (target, golden))
        #: Both dumps record the network itself as a module; else its APIs are those outside of all modules.
        self.rooted = any(not path for path, _ in self.destinations)
        self.claims = Claims(said.alone, self._rule)
        self.paired_modules = {
            True: set(self.destinations),
            False: {found.module for found in self.destinations.values()},
        }
        #: Module calls of both sides without a twin → the call of the other side that encloses what they enclose.
        self.around: dict[bool, dict[str, str | None]] = {True: {}, False: {}}
        #: Where a compiled graph takes part, the number of a kernel does not say which it is.
        self.kernels = pair_kernels(target, golden)

    def run(self) -> dict[str, Twin]:
        self.claims.claim_all(self.said.entries, PairedBy.DATA)
        for ours, theirs in self.said.groups:
            self.claims.claim_group(ours, theirs, PairedBy.GROUP)
        self.claims.claim_all(self.kernels, PairedBy.NAME)
        leaders = [entry for entry in self.ours.entries.values() if entry.name not in self.ours.forwards]
        followers = [entry for entry in self.ours.entries.values() if entry.name in self.ours.forwards]
        if self.fuzzy:
            if self.scoped:
                # Which module's call it is says more of a function than what runs around it.
                self._align(*(self._free(side, leaders=True, functions=False) for side in (self.ours, self.theirs)))
                self._by_scope(self._scope)
            self._align(self._free(self.ours, leaders=True), self._free(self.theirs, leaders=True))
            self._follow(followers)
            self._align(self._free(self.ours, leaders=False), self._free(self.theirs, leaders=False))
        else:
            settled = self._by_figures()
            self._by_call([entry for entry in leaders if entry.name not in settled])
            self._follow(followers)
            self._by_call([entry for entry in followers if self.ours.forwards[entry.name] not in self.claims.twins])
        if self.scoped or self.everywhere:
            self._by_scope(self._scope)
            if self.everywhere:
                self._by_scope(_whole_step)
            self._follow(followers)
        self.claims.claim_all(self.said.fallback, PairedBy.DATA)
        return self.claims.twins

    def _rule(self, name: str, golden: str) -> ApiRule | None:
        """The rule that speaks of both."""
        ours = self.words[True].rule(self.ours.entries[name])
        theirs = self.words[False].rule(self.theirs.entries[golden])
        return ours if ours and theirs and ours.word == theirs.word else None

    def _how(self, parsed: EntryName | None) -> PairedBy:
        found = self.destinations.get((parsed.name, parsed.class_name)) if parsed and parsed.is_module else None
        return found.how if found else PairedBy.NAME

    # Exact calls.

    def _by_figures(self) -> set[str]:
        """Names called more often on one side, where what the calls give out tells which is which; their calls."""
        ours, theirs = self._forwards(self.ours), self._forwards(self.theirs)
        settled: set[str] = set()
        for key, calls in ours.items():
            others = theirs.get(key, [])
            if len(calls) == len(others) or not others or any(call.recomputed for call in (*calls, *others)):
                continue
            marks = ([(None, figures_given(call)) for call in side] for side in (calls, others))
            if pairs := align_by_marks(*marks):
                settled.update(call.name for call in calls)
                for place, other in pairs:
                    call = calls[place]
                    self.claims.claim(call.name, others[other].name, self._how(call.parsed))
        return settled

    def _forwards(self, side: Side) -> dict[Hashable, list[Entry]]:
        """Forward calls that pair by number, by what they are calls of."""
        ours = side is self.ours
        groups: dict[Hashable, list[Entry]] = {}
        for entry in side.entries.values():
            parsed = entry.parsed
            if parsed is None or parsed.direction != FORWARD or (self.kernels and is_kernel(entry)):
                continue
            key: Hashable | None = None
            if parsed.is_module:
                key = self._golden_module((parsed.name, parsed.class_name), ours)
            elif not (self.scoped or self.words[ours].rule(entry)):
                key = (parsed.prefix, parsed.name, "")
            if key is not None and not self.claims.taken(entry.name, ours):
                groups.setdefault(key, []).append(entry)
        return groups

    def _by_call(self, entries: list[Entry]) -> None:
        """The same call of the same module, or the same name; APIs in scoped mode wait for ``_by_scope``."""
        for entry in entries:
            parsed = entry.parsed
            if self.kernels and is_kernel(entry):
                continue
            if parsed is None:
                self.claims.claim(entry.name, entry.name if entry.name in self.theirs.entries else None, PairedBy.NAME)
            elif parsed.is_module:
                if found := self.destinations.get((parsed.name, parsed.class_name)):
                    meaning = ("module", *found.module, parsed.direction, parsed.index or 0)
                    self.claims.claim(entry.name, self.theirs.by_meaning.get(meaning), found.how)
            elif parsed.direction == DEBUG or not (self.scoped or self.words[True].rule(entry)):
                self.claims.claim(entry.name, self.theirs.by_meaning.get(meaning_of(parsed)), PairedBy.NAME)

    def _follow(self, followers: list[Entry]) -> None:
        """A backward goes where its forward went."""
        for entry in followers:
            if self.kernels and is_kernel(entry):
                continue
            forward = self.claims.twins.get(self.ours.forwards[entry.name])
            if forward and forward.ours:
                self._follow_group(forward)
                continue
            twin = self.theirs.entries[forward.golden].parsed if forward else None
            if forward and twin and entry.parsed:
                golden = self.theirs.by_meaning.get(meaning_of(twin.in_direction(entry.parsed.direction)))
                self.claims.claim(entry.name, golden, forward.how)

    def _follow_group(self, forward: Twin) -> None:
        """The backwards of a group, as far as there are any, beside its twin's."""
        ours, theirs = (
            [
                name
                for parsed in (side.entries[name].parsed for name in names)
                if parsed and (name := side.by_meaning.get(meaning_of(parsed.in_direction(BACKWARD))))
            ]
            for side, names in ((self.ours, forward.ours), (self.theirs, forward.all_golden))
        )
        self.claims.claim_group(ours, theirs, forward.how)

    def _by_scope(self, scope_of: Callable[[Entry, bool], Hashable | None]) -> None:
        """APIs inside one call of one module, or all together at level L1."""
        back = {golden: name for name, twin in self.claims.twins.items() for golden in twin.all_golden}
        forth = {name: twin.golden for name, twin in self.claims.twins.items()}
        self.around = {
            True: places_of_untwinned(self.ours.entries, self.theirs.entries, forth),
            False: places_of_untwinned(self.theirs.entries, self.ours.entries, back),
        }
        others = self._scopes(self.theirs, scope_of)
        for (scope, direction), calls in self._scopes(self.ours, scope_of).items():
            if (scope, direction) not in others:
                continue
            twins = others[scope, direction]
            for found in pair_calls(calls, twins, forward=direction == FORWARD, module=bool(scope)):
                if found.how == PairedBy.GROUP:
                    ours, theirs = ([each.name for each in side] for side in (found.target, found.golden))
                    self.claims.claim_group(ours, theirs, found.how)
                else:
                    entry, other = found.target[0], found.golden[0]
                    how = found.how or self._api_how(entry, self._how(_parent(entry)))
                    self.claims.claim(entry.name, other.name, how)

    def _api_how(self, entry: Entry, how: PairedBy) -> PairedBy:
        return PairedBy.API if self.words[True].rule(entry) else how

    def _scopes(
        self, side: Side, scope_of: Callable[[Entry, bool], Hashable | None]
    ) -> dict[tuple[Hashable, str], Scope]:
        """APIs by the scope they were called in and their direction."""
        ours = side is self.ours
        scopes: dict[tuple[Hashable, str], Scope] = {}
        for entry in side.entries.values():
            parsed = entry.parsed
            if parsed is None or parsed.is_module or parsed.direction == DEBUG or entry.name in side.forwards:
                continue
            if self._in_fused(entry, ours):
                continue
            if (scope := scope_of(entry, ours)) is not None:
                words = None if self.claims.taken(entry.name, ours) else self.words[ours].of(entry)
                scopes.setdefault((scope, parsed.direction), Scope()).hold(entry, words)
        return scopes

    def _scope(self, entry: Entry, ours: bool) -> Hashable | None:
        """The golden module call an API runs in: (path, class, call); () outside of all, None in an unpaired module."""
        parent = self._enclosing(entry)
        if parent is None:
            return ()
        call = parent.index or 0
        if entry.parent in self.around[ours] and (parent.name, parent.class_name) not in self.paired_modules[ours]:
            place = self.around[ours][entry.parent]
            return scope_of(place) if ours or place is None else self._scope_of_twin(place)
        if not ours:
            return (parent.name, parent.class_name, call)
        twin = self.claims.twins.get(entry.parent or "")
        golden = self.theirs.entries[twin.golden].parsed if twin else None
        if golden is not None:
            return (golden.name, golden.class_name, golden.index or 0)
        found = self.destinations.get((parent.name, parent.class_name))
        return (*found.module, call) if found else None

    def _scope_of_twin(self, name: str) -> Hashable | None:
        """The scope of the golden call that stands beside a target one."""
        twin = self.claims.twins.get(name)
        return scope_of(twin.golden) if twin else None

    # Fuzzy: call indices say nothing.

    def _free(self, side: Side, *, leaders: bool, functions: bool = True) -> list[tuple[Hashable, Entry]]:
        """Entries not yet paired, in execution order, with the name that stays when call indices are dropped."""
        ours = side is self.ours
        keyed: Iterator[tuple[Hashable | None, Entry]] = (
            (self._free_key(entry, ours), entry)
            for entry in side.entries.values()
            if not self.claims.taken(entry.name, ours)
            and (entry.name not in side.forwards) == leaders
            and (functions or not is_function(entry.parsed))
            and not (is_function(entry.parsed) and self._in_fused(entry, ours))
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
        rule = self.words[ours].rule(entry)
        if parsed.direction == DEBUG or not self.scoped:
            return (rule.word, parsed.direction) if rule else (parsed.prefix, parsed.name, parsed.direction)
        word = self.words[ours].of(entry)[OPERATION]
        parent = self._enclosing(entry)
        if parent is None:
            return ((), word, parsed.direction)
        module = self._golden_module((parent.name, parent.class_name), ours)
        return (module, word, parsed.direction) if module else None

    def _in_fused(self, entry: Entry, ours: bool) -> bool:
        parent = _parent(entry) if self.fused[ours] else None
        return parent is not None and (parent.name, parent.class_name) in self.fused[ours]

    def _golden_module(self, module: Module, ours: bool) -> Module | None:
        if not ours:
            return module
        found = self.destinations.get(module)
        return found.module if found else None

    def _align(self, ours: list[tuple[Hashable, Entry]], theirs: list[tuple[Hashable, Entry]]) -> None:
        for place, other in align([key for key, _ in ours], [key for key, _ in theirs]):
            entry = ours[place][1]
            module = entry.parsed if entry.parsed and entry.parsed.is_module else _parent(entry)
            self.claims.claim(entry.name, theirs[other][1].name, self._api_how(entry, self._how(module)))

    def _enclosing(self, entry: Entry) -> EntryName | None:
        """The module call around an API; None outside of all, and where the two dumps cannot both tell."""
        parent = _parent(entry)
        return None if self.flat or (parent and not parent.name and not self.rooted) else parent


def _parent(entry: Entry) -> EntryName | None:
    return parse_entry(entry.parent) if entry.parent else None


def _whole_step(entry: Entry, ours: bool) -> Hashable:
    """One scope for all."""
    return ()
