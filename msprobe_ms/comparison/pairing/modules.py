"""Pair modules: the most specific of layer mapping, cell mapping, automatic alignment and the name decides.

API calls inside a module that has no counterpart pair in another scope. Such a module is a wrapper, or one that the
other side has taken apart. A call of it is known by what it encloses: where the counterparts of all modules called in
it were called in one place of the other side, its own functions belong to that place as well. It may be the script: a
net that only one side wraps. A module that is one function and nothing else (``nn.ReLU``) encloses none: its function
belongs where it was called, as the other side may call the function itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice, takewhile

from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.pairing.rules.modules import CellRules, LayerRules, ModuleTree, is_nowhere
from msprobe_ms.comparison.terms import PairedBy
from msprobe_ms.dump.model import Dump, Entry, ancestors
from msprobe_ms.dump.names import FORWARD, EntryName, beginnings, parse_entry
from msprobe_ms.support.log import logger
from msprobe_ms.support.text import listed, suggestion
from msprobe_ms.support.translation import tr

#: A module: dotted path and class.
Module = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Destination:
    """The golden module of a target module, and what named it; ``rank`` 0 is the most specific."""

    module: Module
    how: PairedBy
    rank: int
    rules: tuple[str, ...] = ()


def modules_of(dump: Dump) -> list[Module]:
    """List modules with entries of their own and those known only as a parent, each once, in execution order."""
    found: dict[Module, None] = {}
    for entry in dump.entries.values():
        for parsed in (entry.parsed, parse_entry(entry.parent) if entry.parent else None):
            if parsed and parsed.is_module:
                found[parsed.name, parsed.class_name] = None
    return list(found)


def destinations(ours: list[Module], theirs: list[Module], mappings: Mappings) -> dict[Module, Destination]:
    """Return the golden module of each target module; classes count only where one golden path has several.

    A golden module wanted twice goes to the most specific; the loser gets none and is named in a warning. A module
    that a rule moves to a place where the golden dump has none gets none either: the rule said it is not elsewhere.
    """
    place = _Placing(ours, theirs, mappings)
    classes: dict[str, dict[str, None]] = {}
    for path, class_name in theirs:
        classes.setdefault(path, {})[class_name] = None
    winners: dict[Module, tuple[Module, Destination]] = {}
    losers: list[str] = []
    missed: dict[str, Destination] = {}
    for module in ours:
        wanted = place.of(module)
        path, class_name = wanted.module
        known = classes.get(path, {})
        if class_name not in known and len(known) != 1:
            missed[module[0]] = wanted
            continue
        golden = (path, class_name if class_name in known else next(iter(known)))
        place.found.update(wanted.rules)
        rival = winners.get(golden)
        better = rival is None or (wanted.rank, module[1] != golden[1]) < (rival[1].rank, rival[0][1] != golden[1])
        if rival is not None:
            losers.append(
                tr("{which} (to {golden})", which=".".join(rival[0] if better else module), golden=".".join(golden))
            )
        if better:
            winners[golden] = (module, replace(wanted, module=golden))
    if losers:
        logger.warning(
            tr(
                "two target modules for one golden module, the less specific is unmatched: {losers}",
                losers=listed(losers, most=10),
            )
        )
    place.warn_idle_rules(ours, missed)
    return dict(winners.values())


def said_unmatched(dump: Dump, rules: Mapping[str, Mapping[str, str]]) -> set[Module]:
    """Return the target's modules that a layer mapping says have no counterpart, and all inside of them."""
    if not any(is_nowhere(value) for children in rules.values() for value in children.values()):
        return set()
    modules = modules_of(dump)
    walk = LayerRules(rules, ModuleTree.of(modules), ModuleTree())
    return {module for module in modules if not walk.nowhere.isdisjoint(walk.golden_path(module[0])[1])}


class _Placing:
    """The most specific word about a module, and which rules came to anything."""

    def __init__(self, ours: list[Module], theirs: list[Module], mappings: Mappings) -> None:
        trees = (ModuleTree.of(ours), ModuleTree.of(theirs)) if mappings.layer or mappings.automatic else ()
        self.layer = LayerRules(mappings.layer, *trees) if mappings.layer else None
        self.automatic = LayerRules(mappings.automatic, *trees) if mappings.automatic else None
        self.cell = CellRules(mappings.cell) if mappings.cell else None
        self.unsaid = PairedBy.NAME if mappings.cell is None else PairedBy.CELL
        self.met: set[str] = set()
        self.found: set[str] = set()

    def of(self, module: Module) -> Destination:
        """Where rules put a module; the class is a wish, not yet looked up in the golden dump."""
        wanted = Destination(module, self.unsaid, 3)
        if self.automatic:
            path, rules = self.automatic.golden_path(module[0])
            if rules:
                wanted = Destination((path, module[1]), PairedBy.AUTOMATIC, 2)
        if self.cell:
            path, class_name, rules = self.cell.golden(*module)
            if rules:
                wanted = Destination((path, class_name), PairedBy.CELL, 1, rules)
        if self.layer:
            path, rules = self.layer.golden_path(module[0])
            if rules:
                wanted = Destination((path, module[1]), PairedBy.LAYER, 0, rules)
        self.met.update(wanted.rules)
        return wanted

    def warn_idle_rules(self, ours: list[Module], missed: Mapping[str, Destination]) -> None:
        """Rules that met no target module, or led to no golden module, are most often misspelt: name them.

        Below a module that was led astray no rule is to blame: ``missed`` are target paths without a golden module.
        """
        spoken = (self.layer.spoken if self.layer else set()) | (self.cell.spoken if self.cell else set())
        if unmet := sorted(spoken - self.met):
            known = [name for name, _ in Counter(class_name for _, class_name in ours).most_common()]
            classes = listed(known, 30)
            unmet = [self._with_meant(rule, known) for rule in unmet]
            logger.warning(
                tr(
                    "mapping rules that meet no module of the target: {unmet}\nA layer rule stands under the "
                    "class of the parent (TopLayer is the network itself); classes here: {classes}",
                    unmet=listed(unmet, most=10),
                    classes=classes,
                ),
            )
        nowhere = self.layer.nowhere if self.layer else set()
        ruled = {path: wanted for path, wanted in missed.items() if wanted.rules}
        blamed = {rule for path, wanted in ruled.items() if not _led_astray(path, missed) for rule in wanted.rules}
        if lost := sorted(blamed - self.found - nowhere):
            logger.warning(
                tr("mapping rules that lead to no module of the golden dump: {lost}", lost=listed(lost, most=10))
            )

    def _with_meant(self, rule: str, classes: Collection[str]) -> str:
        """A layer rule, with the class that its own may stand for."""
        own = rule.partition(".")[0]
        if self.layer is None or rule not in self.layer.spoken or own in (*classes, "TopLayer"):
            return rule
        return tr("{rule}{meant}", rule=rule, meant=suggestion(own, classes))


def _led_astray(path: str, missed: Mapping[str, Destination]) -> bool:
    """Whether a module around this one was put where the golden has none, and this one inside it."""
    led = f"{missed[path].module[0]}."
    for around in islice(beginnings(path), 1, None):
        if around in missed and led.startswith(f"{missed[around].module[0]}."):
            return True
    return False


def scopes_of_unpaired(
    entries: Mapping[str, Entry], others: Mapping[str, Entry], counterparts: Mapping[str, str], *, rooted: bool
) -> dict[str, str | None]:
    """Return, for module calls without a counterpart, the call of the other dump that encloses what they enclose.

    None stands for outside of all.

    ``counterparts``  names of ``entries`` → of ``others``
    ``rooted``        whether both record the model itself; if not, its calls are as if they were not there
    """
    found: dict[str, set[str | None]] = {}
    for name, counterpart in counterparts.items():
        entry, other = entries.get(name), others.get(counterpart)
        if entry is None or other is None or entry.parsed is None or not entry.parsed.is_module:
            continue
        for caller in takewhile(lambda call: call not in counterparts, ancestors(entries, name)):
            found.setdefault(caller, set()).add(other.parent if rooted or not is_root(other.parent) else None)
    scopes = {name: next(iter(each)) for name, each in found.items() if len(each) == 1}
    for name in _single_functions(entries, counterparts):
        outer = next((call for call in ancestors(entries, name) if call in counterparts or call in found), None)
        if outer is None or outer in counterparts:
            scopes[name] = None if outer is None else counterparts[outer]
        elif outer in scopes:
            scopes[name] = scopes[outer]
    return scopes


def _single_functions(entries: Mapping[str, Entry], counterparts: Mapping[str, str]) -> Iterator[str]:
    """Yield unmatched module calls that are one function: they call it alone, bear its name and have no parameters."""
    called: dict[str, list[EntryName]] = {}
    for entry in entries.values():
        if entry.parsed is not None and entry.parsed.direction == FORWARD and entry.parent is not None:
            called.setdefault(entry.parent, []).append(entry.parsed)
    for name, functions in called.items():
        module = entries.get(name)
        if module is None or module.parsed is None or name in counterparts:
            continue
        if len(functions) > 1 or functions[0].is_module:
            continue
        named = map(_plain, functions[0].name.split("."))
        if _plain(module.parsed.class_name) in named and not module.in_state("parameters"):
            yield name


def _plain(name: str) -> str:
    """``max_pool2d`` as ``MaxPool2d``."""
    return name.replace("_", "").lower()


def is_root(call: str | None) -> bool:
    """Return whether an entry is a call of the model itself."""
    parsed = parse_entry(call) if call is not None else None
    return parsed is not None and parsed.is_root


def scope_of(call: str | None) -> Hashable | None:
    """Return (path, class, call) of a module's entry, () outside of all; None for any other entry."""
    parsed = parse_entry(call) if call is not None else None
    if call is not None and parsed is not None and parsed.is_module:
        return parsed.name, parsed.class_name, parsed.index or 0
    return () if call is None else None
