"""Find modules that are one on one side and several on the other: ``qkv`` beside ``q, k, v``.

A layer mapping says so with ``+``: ``q + k + v: qkv`` or ``qkv: q + k + v``; a data mapping, with the names of entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msprobe_ms.comparison.pairing.modules import Destination, Module, modules_of
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.pairing.rules.modules import CellRules, LayerRules, ModuleTree
from msprobe_ms.comparison.terms import GOLDEN, TARGET, Side
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.names import JOINED, beginnings, is_fused, parse_entry


class Fusion(NamedTuple):
    """``parts`` of one side, in the order they are named, that are ``whole`` on the other; ``path``: of all of them."""

    path: str
    parts: tuple[Module, ...]
    whole: Module


#: Those whose parts are the target's, and those whose parts are the golden's.
Fusions = tuple[list[Fusion], list[Fusion]]


def fused_modules(destinations: Mapping[Module, Destination]) -> tuple[set[Module], set[Module]]:
    """Return the modules of the target and of the golden that stand beside several."""
    pairs = [(module, found.module) for module, found in destinations.items()]
    pairs = [both for both in pairs if any(is_fused(path) for path, _ in both)]
    return {ours for ours, _ in pairs}, {theirs for _, theirs in pairs}


def find_fusions(target: Dump, golden: Dump, mappings: Mappings) -> Fusions:
    """Find what the mappings say is fused, as far as both dumps have the modules.

    What was found by itself gives way to what the user said of one of the modules.
    """
    said = [rule for rule in mappings.data.items() if any(JOINED in name for name in rule if name)]
    if not (said or any(map(_speaks, (mappings.layer, mappings.automatic)))):
        return [], []
    search = _Search(modules_of(target), modules_of(golden))
    for name, golden_name in said:
        search.by_data(name, golden_name)
    search.by_rules(mappings.layer)
    search.spoken = _spoken(target, golden, mappings)
    search.by_rules(mappings.automatic)
    return search.found


class _Search:
    """``found`` so far; each module is part of one at most. What is ``spoken`` of is left alone."""

    def __init__(self, ours: list[Module], theirs: list[Module]) -> None:
        self.modules = ours, theirs
        self.trees = ModuleTree.of(ours), ModuleTree.of(theirs)
        self.by_path = tuple({module[0]: module for module in reversed(side)} for side in (ours, theirs))
        self.found: Fusions = ([], [])
        self.spoken: tuple[set[Module], set[Module]] = (set(), set())
        self._taken: tuple[set[Module], set[Module]] = (set(), set())

    def by_rules(self, rules: Mapping[str, Mapping[str, str]]) -> None:
        """Wherever a class has such children, and its golden counterpart what they are there."""
        if not _speaks(rules):
            return
        walk = LayerRules(rules, *self.trees)
        parents: dict[str, list[str]] = {}
        for path in dict.fromkeys(above for module, _ in self.modules[TARGET] for above in ("", *_above(module))):
            for name in walk.names_of(tuple(path.split(".")) if path else ()):
                parents.setdefault(name, []).append(path)
        for parent, children in rules.items():
            for child, value in children.items():
                if JOINED in child or JOINED in value:
                    for path in parents.get(parent, ()):
                        self._add(_below(path, child), path, _below(golden := walk.golden_path(path)[0], value), golden)

    def by_data(self, name: str, golden_name: str | None) -> None:
        ours, theirs = parse_entry(name), parse_entry(golden_name or "")
        if ours and theirs and ours.is_module and theirs.is_module:
            for above in ("", *_above(ours.name)):
                for above_there in ("", *_above(theirs.name)):
                    self._add(ours.name, above, theirs.name, above_there)

    def _add(self, path: str, above: str, golden_path: str, golden_above: str) -> None:
        """If one of them is there and the other in parts; ``above``: where the names of the parts begin."""
        both = self._modules(TARGET, path, above), self._modules(GOLDEN, golden_path, golden_above)
        side = TARGET if JOINED in path else GOLDEN
        parts, wholes = both[side], both[side.other]
        if len(parts) < 2 or len(wholes) != 1 or self._busy(side, parts) or self._busy(side.other, wholes):
            return
        self._taken[side].update(parts)
        self._taken[side.other].update(wholes)
        self.found[side].append(Fusion((path, golden_path)[side], parts, wholes[0]))

    def _modules(self, side: Side, path: str, above: str) -> tuple[Module, ...]:
        """The modules that a path names, () where one of them is not there."""
        names = path[len(above) :].removeprefix(".").split(JOINED)
        found = [self.by_path[side].get(_below(above, name)) for name in names]
        modules = tuple(module for module in found if module is not None)
        return modules if len(modules) == len(found) == len(set(modules)) else ()

    def _busy(self, side: Side, modules: tuple[Module, ...]) -> bool:
        return any(module in self._taken[side] or module in self.spoken[side] for module in modules)


def _spoken(target: Dump, golden: Dump, mappings: Mappings) -> tuple[set[Module], set[Module]]:
    """Modules of both sides that a cell or data mapping speaks of."""
    names = _modules_named(mappings.data, target), _modules_named(filter(None, mappings.data.values()), golden)
    if mappings.cell:
        rules = CellRules(mappings.cell)
        for module in modules_of(target):
            path, class_name, by = rules.golden(*module)
            if by:
                names[TARGET].add(module)
                names[GOLDEN].add((path, class_name))
    return names


def _modules_named(names: Iterable[str], dump: Dump) -> set[Module]:
    entries = (next((begin for begin in beginnings(name) if begin in dump.entries), "") for name in names)
    parsed = (parse_entry(entry) for entry in entries)
    return {(each.name, each.class_name) for each in parsed if each is not None and each.is_module}


def _speaks(rules: Mapping[str, Mapping[str, str]]) -> bool:
    return any(JOINED in child or JOINED in value for children in rules.values() for child, value in children.items())


def _above(path: str) -> Iterator[str]:
    while path := path.rpartition(".")[0]:
        yield path


def _below(above: str, path: str) -> str:
    return f"{above}.{path}" if above else path
