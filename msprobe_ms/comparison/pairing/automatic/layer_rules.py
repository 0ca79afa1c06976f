"""Write the shortest layer mapping that gives a set of module pairs, with a confidence for each line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from msprobe_ms.comparison.pairing.rules.files import TOP_LAYERS
from msprobe_ms.comparison.pairing.rules.modules import NOWHERE, LayerRules, ModuleTree, Parts
from msprobe_ms.dump.names import JOINED
from msprobe_ms.support.yaml_files import quoted

Rules = dict[str, dict[str, str]]

_TOP = "TopLayer"
#: Rounds of correction; each mends what is wrong furthest up, so the depth of the tree is enough.
_MOST_ROUNDS = 64

#: What needs no quotes in yaml, whatever stands around it.
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*( \+ [A-Za-z0-9_.\-]+)*")


def write_rules(
    pairs: Mapping[str, str | None], target: Iterable[tuple[str, str]], golden: Iterable[tuple[str, str]]
) -> Rules:
    """Return rules that lead every target path of ``pairs`` to its golden path, and those with None to no module.

    First what most modules of a class say about their children; where single ones differ, a rule with the whole path
    under TopLayer, which is more specific than any other.
    """
    return _Writer(pairs, ModuleTree.of(target), ModuleTree.of(golden)).run()


class _Writer:
    def __init__(self, pairs: Mapping[str, str | None], target: ModuleTree, golden: ModuleTree) -> None:
        self.target, self.golden = target, golden
        self.pairs = {_parts(one): None if other is None else _parts(other) for one, other in pairs.items()}
        self.pairs[()] = ()
        self.paths = sorted(self.pairs, key=len)

    def run(self) -> Rules:
        rules = self._by_class()
        for _ in range(_MOST_ROUNDS):
            wrong = self._wrong(rules)
            if not wrong:
                break
            self._mend(rules, wrong)
        return {parent: children for parent, children in rules.items() if children}

    def _by_class(self) -> Rules:
        """What most say of a child of this name."""
        votes: dict[tuple[str, Parts], Counter[Parts]] = {}
        for path, other in self.pairs.items():
            if other is not None and path:
                base, base_there = self._base(path, other)
                if self._class(base) in TOP_LAYERS:  # a mapping file means the network by it
                    base, base_there = (), ()
                key, value = without_common_end(path[len(base) :], other[len(base_there) :])
                votes.setdefault((self._class(base), key), Counter())[value] += 1
        rules: Rules = {}
        for (parent, key), values in votes.items():
            value = values.most_common(1)[0][0]
            if key != value:
                rules.setdefault(parent, {})[".".join(key)] = ".".join(value)
        return rules

    def _base(self, path: Parts, other: Parts) -> tuple[Parts, Parts]:
        """The nearest module above whose golden counterpart is above the golden path; the network itself always is."""
        for length in range(len(path) - 1, 0, -1):
            above = self.pairs.get(path[:length])
            if above is not None and other[: len(above)] == above and len(above) < len(other):
                return path[:length], above
        return (), ()

    def _class(self, path: Parts) -> str:
        return self.target.classes.get(path, path[-1]) if path else _TOP

    def _wrong(self, rules: Rules) -> list[Parts]:
        """Paths that lead elsewhere, furthest up first; nothing below one of them."""
        walk = LayerRules(rules, self.target, self.golden)
        wrong: dict[Parts, None] = {}
        for path in self.paths:
            led, wanted = _parts(walk.golden_path(".".join(path))[0]), self.pairs[path]
            if led == wanted or (wanted is None and led not in self.golden.classes):
                continue
            if not any(path[:length] in wrong for length in range(1, len(path))):
                wrong[path] = None
        return list(wrong)

    def _mend(self, rules: Rules, wrong: list[Parts]) -> None:
        """Say once a class that modules have no counterpart, if all of that name have none; of the rest one by one."""
        said: set[tuple[str, Parts]] = set()
        for path in wrong:
            wanted = self.pairs[path]
            if wanted is None and (parent := self._parent(path)):
                class_name, key = self._class(parent), path[len(parent) :]
                if (class_name, key) in said:
                    continue
                # What a class was told before did not help: a rule with the whole path is in the way.
                known = ".".join(key) in rules.get(class_name, {}) or class_name in TOP_LAYERS
                if not known and self._all_alone(class_name, key):
                    rules.setdefault(class_name, {})[".".join(key)] = NOWHERE
                    said.add((class_name, key))
                    continue
            rules.setdefault(_TOP, {})[".".join(path)] = NOWHERE if wanted is None else ".".join(wanted)

    def _parent(self, path: Parts) -> Parts:
        """The nearest module above that has a counterpart; () for the network."""
        return next((path[:n] for n in range(len(path) - 1, 0, -1) if self.pairs.get(path[:n]) is not None), ())

    def _all_alone(self, class_name: str, key: Parts) -> bool:
        return not any(
            other is not None and path[-len(key) :] == key and self._class(path[: -len(key)]) == class_name
            for path, other in self.pairs.items()
        )


def rule_lines(
    rules: Rules, notes: Mapping[tuple[str, str], float], words: Mapping[tuple[str, str], str] = MappingProxyType({})
) -> Iterator[str]:
    """The text of a layer mapping, a rule a line; ``notes`` are confidences by (parent, child), ``words`` stand
    behind them.
    """
    for parent, children in rules.items():
        yield f"{_scalar(parent)}:"
        for child, value in children.items():
            note = notes.get((parent, child))
            remark = "" if note is None else f"  # {note:.2f}"
            yield f"  {_scalar(child)}: {_scalar(value)}{remark}{words.get((parent, child), '') if remark else ''}"


def add_fused(
    rules: Rules,
    groups: Iterable[tuple[Sequence[str], Sequence[str]]],
    target: Iterable[tuple[str, str]],
    golden: Iterable[tuple[str, str]],
) -> list[tuple[str, str]]:
    """Say in ``rules`` which paths of both sides are the same together; returns (parent, child) of each rule.

    It stands under the class of the module around them where that leads to the golden ones too, else under TopLayer.
    """
    walk = LayerRules(rules, tree := ModuleTree.of(target), ModuleTree.of(golden))
    added = []
    for ours, theirs in groups:
        above, around = _common(ours), _common(theirs)
        while (led := _parts(walk.golden_path(".".join(above))[0])) != around[: len(led)] and above:
            above = above[:-1]
        parent = tree.classes.get(above, above[-1]) if above else _TOP
        child, value = _joined(ours, len(above)), _joined(theirs, len(led))
        if parent in TOP_LAYERS or rules.get(parent, {}).get(child, value) != value:
            parent, child, value = _TOP, _joined(ours, 0), _joined(theirs, 0)
        rules.setdefault(parent, {})[child] = value
        added.append((parent, child))
    return added


def _common(paths: Sequence[str]) -> Parts:
    """What encloses all of them."""
    above = _parts(paths[0])[:-1]
    while not all(_parts(path)[: len(above)] == above for path in paths):
        above = above[:-1]
    return above


def _joined(paths: Sequence[str], start: int) -> str:
    return JOINED.join(".".join(_parts(path)[start:]) for path in paths)


def rules_used(
    rules: Rules, paths: Iterable[str], target: Iterable[tuple[str, str]], golden: Iterable[tuple[str, str]]
) -> dict[str, tuple[str, ...]]:
    """Target path → the rules, as ``parent.child``, that lead it to its golden path."""
    walk = LayerRules(rules, ModuleTree.of(target), ModuleTree.of(golden))
    return {path: tuple(rule for rule in walk.golden_path(path)[1] if rule in walk.spoken) for path in paths}


def confidences(
    rules: Rules, pairs: Mapping[str, float], used: Mapping[str, tuple[str, ...]]
) -> dict[tuple[str, str], float]:
    """(parent, child) of a rule → the lowest confidence of the pairs it is the last word on.

    ``pairs``  target path → confidence
    """
    named = {f"{parent}.{child}": (parent, child) for parent, children in rules.items() for child in children}
    found: dict[tuple[str, str], float] = {}
    for path, confidence in pairs.items():
        if used[path]:
            rule = named[used[path][-1]]
            found[rule] = min(confidence, found.get(rule, 1.0))
    return found


def without_common_end(name: Parts, value: Parts) -> tuple[Parts, Parts]:
    """``layers.0`` beside ``blocks.0`` is a rename of ``layers``."""
    while len(name) > 1 and len(value) > 1 and name[-1] == value[-1]:
        name, value = name[:-1], value[:-1]
    return name, value


def _scalar(text: str) -> str:
    """As yaml: quoted where it would read as something else."""
    plain = _PLAIN.fullmatch(text) and text.lower() != "null"
    return text if plain else quoted(text)


def _parts(path: str) -> Parts:
    return tuple(path.split(".")) if path else ()
