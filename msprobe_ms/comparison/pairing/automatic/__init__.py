"""Align the modules of two dumps without a mapping: which of the target is which of the golden.

Layers first: statistics that only two of them share fix points, unless weights look exchanged; between them the order
of execution, kinds, shapes and names decide. Then what encloses them, by the layers it encloses. Every pair has a
confidence; what could as well be another is left out.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from msprobe_ms.comparison.pairing.automatic.containers import CERTAIN, enclosing, inside, match_inner, match_whole
from msprobe_ms.comparison.pairing.automatic.fused import find_fused, norms_add_up, pair_held
from msprobe_ms.comparison.pairing.automatic.layer_rules import (
    Rules,
    add_fused,
    confidences,
    rule_lines,
    rules_used,
    write_rules,
)
from msprobe_ms.comparison.pairing.automatic.layers import Found, match_layers, match_left
from msprobe_ms.comparison.pairing.automatic.outline import Node, Outline, outline
from msprobe_ms.comparison.pairing.automatic.scores import ModuleScores
from msprobe_ms.comparison.pairing.automatic.siblings import pair_alike
from msprobe_ms.comparison.pairing.automatic.swapped_weights import doubted, find_exchanged, put_right
from msprobe_ms.comparison.pairing.automatic.uncrossed import uncrossed
from msprobe_ms.dump.model import Dump, knows_root
from msprobe_ms.support.errors import MappingError
from msprobe_ms.support.files import DEFAULT, replacing
from msprobe_ms.support.log import logger
from msprobe_ms.support.text import listed
from msprobe_ms.support.translation import tr, tr_join, tr_list, translated

#: A module: dotted path and class.
Module = tuple[str, str]

#: Below this a pair is a guess and left out.
_LEAST_CONFIDENCE = 0.5
#: Pairs that keep their names are named when they are less sure than this; and how many at most.
_SURE, _LISTED = 0.75, 10
#: Evidence and margin at which confidence reaches 63 %.
_EVIDENCE_SCALE, _MARGIN_SCALE = 2.5, 1.0

#: Levels that record modules.
_WITH_MODULES = ("L0", "mix")

_HEAD = tr("""\
# This layer mapping was found from the two dumps. First comes the class of the parent; below it stands a line for each
# child, "child: its name in the golden". The number behind a line (0 to 1) is the confidence of this line: the lowest
# among the pairs it makes. Correct this file where it is wrong, and give it with -lm FILE.
""")


def exchanged_mark() -> str:
    """Return how the remarks in the file about weights begin."""
    return translated(tr("# these weights look exchanged: "))


@dataclass(frozen=True)
class Alignment:
    """What belongs together.

    ``pairs``      target module → (golden module, confidence 0…1)
    ``doubtful``   the same below the confidence that makes a pair
    ``fused``      modules that are the same together: (of the target, of the golden, whether weights or outputs add up)
    ``rules``      the layer mapping that gives these pairs
    ``exchanged``  modules of the target, each of which should have the weights that the next one has
    """

    pairs: dict[Module, tuple[Module, float]]
    doubtful: dict[Module, tuple[Module, float]]
    unmatched_target: list[Module]
    unmatched_golden: list[Module]
    fused: list[tuple[tuple[Module, ...], tuple[Module, ...], bool]]
    rules: Rules
    exchanged: list[tuple[Module, ...]] = field(default_factory=list)
    _notes: dict[tuple[str, str], float] = field(default_factory=dict, repr=False)
    _used: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def lines_for(
        self,
        ours: Container[Module],
        theirs: Container[Module],
        given: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    ) -> list[str]:
        """Return the rules, as lines of yaml, that pair modules of ``ours`` with modules of ``theirs``.

        ``given``: rules that are left out, as there is a file that holds them already.
        """
        paths = [module[0] for module, (other, _) in self.pairs.items() if module in ours and other in theirs]
        for group, others, _ in self.fused:
            if all(module in ours for module in group) and all(module in theirs for module in others):
                paths += [path for path, _ in group]
        used = {rule for path in paths for rule in self._used[path]}
        chosen = {
            parent: kept
            for parent, children in self.rules.items()
            if (
                kept := {
                    child: value
                    for child, value in children.items()
                    if f"{parent}.{child}" in used and given.get(parent, {}).get(child) != value
                }
            )
        }
        return list(rule_lines(chosen, self._notes))

    def text(self) -> str:
        """Return the text of the file: rules, and as comments what was left out."""
        last = {self._used[path][-1] for circle in self.exchanged for path, _ in circle if self._used.get(path)}
        words = {
            (parent, child): translated(tr("; its weights look exchanged, see below"))
            for parent, children in self.rules.items()
            for child in children
            if f"{parent}.{child}" in last
        }
        lines = [translated(_HEAD).rstrip("\n"), *rule_lines(self.rules, self._notes, words)]
        if self._needs_no_rule:  # an empty file is thought to be a mistake, an empty mapping is not
            lines = ["{}"]
        return "\n".join([*lines, *map(translated, self._remarks())]) + "\n"

    @property
    def _needs_no_rule(self) -> bool:
        return bool(self.pairs) and not self.rules

    def exchanges(self) -> str:
        """Which modules hold each other's weights, in words; "" where none do."""
        circles = [tr_join(tr(" and "), (path for path, _ in circle)) for circle in self.exchanged]
        shown = listed(circles, _LISTED, "; ", ", and ")
        return tr("these weights look exchanged: {circles}", circles=shown) if circles else ""

    def _remarks(self) -> Iterator[str]:
        if self._needs_no_rule:
            yield tr(
                "# The {count} modules that are paired have the same names on both sides: no mapping is needed. Lines "
                "of your own stand in place of the braces above.",
                count=len(self.pairs),
            )
        else:
            yield tr(
                "# {count} modules are paired. A module without a line above has the same name on both sides.",
                count=len(self.pairs),
            )
        same = [
            (sure, module) for module, (other, sure) in self.pairs.items() if other[0] == module[0] and sure < _SURE
        ]
        if same:
            least = tr_list(f"{_named(module)} ({sure:.2f})" for sure, module in sorted(same)[:_LISTED])
            yield tr("# Least sure of these: {least}", least=least)
        for circle in self.exchanged:
            held = tr_join(tr(" and "), map(_named, circle))
            told = tr("{held}; they are paired by names and places all the same", held=held)
            yield exchanged_mark() + translated(told)
        for ours, theirs, proven in self.fused:
            reason = tr("; their norms add up") if proven else ""
            both = [tr_list(map(_named, each)) for each in (ours, theirs)]
            yield tr("# fused: {target} = {golden}{reason}", target=both[0], golden=both[1], reason=reason)
        in_fused = {module for ours, theirs, _ in self.fused for module in (*ours, *theirs)}
        for side, modules in (("target", self.unmatched_target), ("golden", self.unmatched_golden)):
            for module in modules:
                if module not in in_fused:
                    guess = self.doubtful.get(module) if side == "target" else None
                    perhaps = tr(", perhaps {name} ({sure:.2f})", name=_named(guess[0]), sure=guess[1]) if guess else ""
                    where = tr("target") if side == "target" else tr("golden")
                    name = _named(module)
                    yield tr("# unmatched in the {side}: {name}{perhaps}", side=where, name=name, perhaps=perhaps)


def align_modules(target: Dump, golden: Dump) -> Alignment:
    """Pair the modules of two dumps by what they did.

    Cost: reading shapes and statistics once, then height × width of the stretches of layers between fixed points, in
    numpy: near-linear where statistics agree, at worst (no statistics at all) quadratic with a small constant.
    """
    rooted = all(knows_root(dump.entries.values()) for dump in (target, golden))
    return align_outlines(outline(target, rooted=rooted), outline(golden, rooted=rooted))


def warn_swapped_weights(alignment: Alignment) -> None:
    """Warn of weights that look exchanged."""
    if told := alignment.exchanges():
        logger.warning(tr("-lm: {told}. Their modules are paired by names and places all the same", told=told))


def _why_nothing_aligned(target: Dump, golden: Dump) -> str:
    for side, dump in (("target", target), ("golden", golden)):
        if not any(entry.parsed is not None and entry.parsed.is_module for entry in dump.entries.values()):
            if dump.level in _WITH_MODULES:
                return tr(
                    "-lm pairs modules, and none was recorded in the {side} ({path}): what ran in a compiled graph is "
                    "in the folder graph",
                    side=tr(side), path=dump.path,
                )  # fmt: skip
            return tr(
                "-lm pairs modules, and the {side} holds none (its level is {level}): record both sides at level L0 or "
                "mix",
                side=tr(side), level=dump.level,
            )  # fmt: skip
    return tr("-lm: no module of the target has a counterpart: their shapes and values have nothing in common")


def write_alignment(target: Dump, golden: Dump, output: Path, ending: str) -> tuple[Alignment, Path]:
    """Align and write ``layer_mapping{ending}.yaml`` into ``output``, which is created; say if nothing pairs."""
    alignment = align_modules(target, golden)
    if not alignment.pairs:
        logger.warning(_why_nothing_aligned(target, golden))
    path = output / f"layer_mapping{ending}.yaml"
    try:
        DEFAULT.make_folder(output)
        with replacing(path) as file:
            file.write(alignment.text().encode("utf-8", "replace"))
    except OSError as error:
        raise MappingError(
            tr("{path}: cannot be written: {strerror}", path=path, strerror=error.strerror or error)
        ) from error
    return alignment, path


def align_outlines(ours: Outline, theirs: Outline) -> Alignment:
    """Align two outlines as ``align_modules`` does two dumps."""
    evidence = ModuleScores(ours, theirs)
    layers = uncrossed(evidence, match_layers(evidence))
    if exchanged := find_exchanged(evidence, layers):
        ours = put_right(ours, exchanged)
        evidence = ModuleScores(ours, theirs)
        layers = doubted(uncrossed(evidence, match_layers(evidence)), exchanged)
    layers = enclosing(evidence, layers)
    fused = find_fused(ours, theirs, _sure(layers))
    inner = match_inner(evidence, _sure(layers), fused)
    around = _sure(inner)
    layers = inside(evidence, layers, around)
    alike = pair_alike(evidence, layers, around)
    if alike is not layers:
        layers = alike
        fused = find_fused(ours, theirs, _sure(layers))
        inner = match_inner(evidence, _sure(layers), fused)
        around = _sure(inner)
    if left := match_left(evidence, _sure(layers), around):
        layers += left
        fused = find_fused(ours, theirs, _sure(layers))
        inner = match_inner(evidence, _sure(layers), fused)
    sure = _sure(layers)
    sure_too = sure | _sure(inner)
    below = [*sure, *(node for group in fused for node in group.ours)]
    below_there = [*sure.values(), *(node for group in fused for node in group.theirs)]
    whole = match_whole(evidence, sure_too, below, below_there)
    held = [Found(*pair, CERTAIN, CERTAIN) for pair in pair_held(ours, theirs, fused)]
    found = _first([*layers, *inner, *whole, *held])
    modules, others = ours.nodes, theirs.nodes
    pairs: dict[Module, tuple[Module, float]] = {}
    doubtful: dict[Module, tuple[Module, float]] = {}
    for one in found:
        node, other, confidence = modules[one.ours], others[one.theirs], _confidence(one)
        sure_enough = confidence >= _LEAST_CONFIDENCE and _can_be_written(node, other)
        (pairs if sure_enough else doubtful)[node.module] = (other.module, confidence)
    rules, notes, used = _rules_of(pairs, modules, others)
    together = [
        (tuple(modules[node].module for node in group.ours), tuple(others[node].module for node in group.theirs))
        for group in fused
    ]
    for (group, _), rule in zip(together, _add_fused(rules, together, modules, others), strict=True):
        used |= {path: (".".join(rule),) for path, _ in group}
    taken = {module for module, _ in pairs.values()}
    return Alignment(
        pairs,
        {module: guess for module, guess in doubtful.items() if guess[0] not in taken},
        [node.module for node in modules if node.module not in pairs],
        [node.module for node in others if node.module not in taken],
        [
            (*both, _proven([modules[node] for node in group.ours], [others[node] for node in group.theirs]))
            for group, both in zip(fused, together, strict=True)
        ],
        rules,
        [tuple(modules[node].module for node in circle) for circle in exchanged],
        notes,
        used,
    )


def _sure(found: list[Found]) -> dict[int, int]:
    return {one.ours: one.theirs for one in found if _confidence(one) >= _LEAST_CONFIDENCE}


def _first(found: list[Found]) -> list[Found]:
    """The surest word about each module of either side; what remains are doubts and pairs that do not touch."""
    kept: list[Found] = []
    ours: set[int] = set()
    theirs: set[int] = set()
    for one in sorted(found, key=lambda one: -_confidence(one)):
        if one.ours not in ours and one.theirs not in theirs:
            kept.append(one)
            ours.add(one.ours)
            theirs.add(one.theirs)
    return kept


def _confidence(found: Found) -> float:
    """How much speaks for it, and how much against every other way."""
    speaking, certain = max(found.score, 0) / _EVIDENCE_SCALE, max(found.margin, 0) / _MARGIN_SCALE
    return (1 - math.exp(-speaking)) * (1 - math.exp(-certain))


def _can_be_written(ours: Node, theirs: Node) -> bool:
    """A layer mapping renames what is below the network, not the network, which stands beside the other."""
    return bool(ours.path) == bool(theirs.path) and "(" not in theirs.path


def _rules_of(
    pairs: dict[Module, tuple[Module, float]], ours: Sequence[Node], theirs: Sequence[Node]
) -> tuple[Rules, dict[tuple[str, str], float], dict[str, tuple[str, ...]]]:
    modules, others = [node.module for node in ours], [node.module for node in theirs]
    wanted: dict[str, str | None] = {}
    for module in modules:
        if module in pairs:
            wanted[module[0]] = pairs[module][0][0]
        else:
            wanted.setdefault(module[0], None)
    rules = write_rules(wanted, modules, others)
    by_path = {module[0]: confidence for module, (_, confidence) in pairs.items()}
    used = rules_used(rules, by_path, modules, others)
    return rules, confidences(rules, by_path, used), used


def _add_fused(
    rules: Rules,
    groups: Sequence[tuple[tuple[Module, ...], tuple[Module, ...]]],
    ours: Sequence[Node],
    theirs: Sequence[Node],
) -> list[tuple[str, str]]:
    paths = [([path for path, _ in mine], [path for path, _ in others]) for mine, others in groups]
    return add_fused(rules, paths, [node.module for node in ours], [node.module for node in theirs])


def _proven(ours: list[Node], theirs: list[Node]) -> bool:
    return norms_add_up(ours, theirs[0]) if len(theirs) == 1 else norms_add_up(theirs, ours[0])


def _named(module: Module) -> str:
    path, class_name = module
    return f"{path} ({class_name})" if path else class_name
