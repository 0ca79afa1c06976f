"""Apply the mappings of modules: by layer rules, or by cell rules, the golden path of a target module.

A layer mapping is walked from the top; the class of each parent says how its children are renamed. The classes come
from the dump itself: ``Cell.layers.0.EncoderLayer.forward.0`` says that ``layers.0`` is an ``EncoderLayer``. A
container without entries of its own (``CellList``) goes by its attribute name instead, so that ``layers: {'5': '0'}``
speaks of the children of every ``layers``.

A cell mapping says ``{dotted.name}.{Class}`` of a target Cell → the golden module's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from msprobe_ms.support.translation import tr

#: Class whose ``layers`` may be numbered globally on one side and from 0 on the other (pipeline stages).
_PIPELINE_CLASS = "ParallelTransformer"
_PIPELINE_CHILD = "layers"

#: What the renumbering is called beside the user's rules.
_RENUMBERING = tr(
    "{pipeline_class}.{pipeline_child} (renumbered)", pipeline_class=_PIPELINE_CLASS, pipeline_child=_PIPELINE_CHILD
)

#: Last part of a golden path that says: there is no such module.
NOWHERE = "unmatched"

Parts = tuple[str, ...]


def is_nowhere(value: str) -> bool:
    """Return whether a rule says that a child has no counterpart."""
    return value.rpartition(".")[2] == NOWHERE


class Branch:
    """A place in the tree: the class of the module there, "" where none has entries, and what lies below by name."""

    __slots__ = ("below", "class_name")

    def __init__(self) -> None:
        self.class_name, self.below = "", dict[str, Branch]()


#: Below what is no module.
_NOTHING = Branch()


@dataclass
class ModuleTree:
    """The modules of one dump: path → class, the numbered children of each container, and all of it to be walked."""

    classes: dict[Parts, str] = field(default_factory=dict)
    numbered: dict[Parts, set[int]] = field(default_factory=dict)
    top: Branch = field(default_factory=Branch)

    @classmethod
    def of(cls, modules: Iterable[tuple[str, str]]) -> ModuleTree:
        """From (dotted path, class), each module once."""
        tree = cls()
        for path, class_name in modules:
            parts = tuple(path.split(".")) if path else ()
            tree.classes.setdefault(parts, class_name)
            branch = tree.top
            for place, part in enumerate(parts):
                if part.isascii() and part.isdigit():
                    tree.numbered.setdefault(parts[:place], set()).add(int(part))
                branch = branch.below.get(part) or branch.below.setdefault(part, Branch())
            branch.class_name = tree.classes[parts]
        return tree


class LayerRules:
    """Target path → golden path under a layer mapping; each distinct path is walked once."""

    def __init__(self, rules: Mapping[str, Mapping[str, str]], target: ModuleTree, golden: ModuleTree) -> None:
        self.target, self.golden = target, golden
        self.rules: dict[str, dict[str, list[tuple[Parts, Parts]]]] = {}
        for parent, children in rules.items():
            by_first = self.rules.setdefault(parent, {})
            for child, value in children.items():
                key = tuple(child.split("."))
                by_first.setdefault(key[0], []).append((key, tuple(value.split("."))))
            for candidates in by_first.values():
                candidates.sort(key=lambda rule: -len(rule[0]))
        #: What each rule is called in messages.
        self.spoken = {f"{parent}.{child}" for parent, children in rules.items() for child in children}
        #: Those that say a child has no counterpart.
        self.nowhere = {
            f"{parent}.{child}"
            for parent, children in rules.items()
            for child, value in children.items()
            if is_nowhere(value)
        }
        self._walked: dict[str, tuple[str, tuple[str, ...]]] = {}

    def golden_path(self, path: str) -> tuple[str, tuple[str, ...]]:
        """The golden path and the rules that moved it (none where it keeps its name)."""
        if path not in self._walked:
            self._walked[path] = self._walk(tuple(path.split(".")) if path else ())
        return self._walked[path]

    def _walk(self, parts: Parts) -> tuple[str, tuple[str, ...]]:
        result: list[str] = []
        rules: list[str] = []
        place, branch = 0, self.target.top
        while place < len(parts):
            taken, written, rule = self._step(parts, place, branch.class_name, result)
            if rule:
                rules.append(rule)
            result.extend(written)
            for part in parts[place : place + taken]:
                branch = branch.below.get(part, _NOTHING)
            place += taken
        return ".".join(result), tuple(rules)

    def _step(self, parts: Parts, place: int, class_name: str, result: list[str]) -> tuple[int, Parts, str]:
        """From here: components taken, what the golden calls them, the rule's name ("" where the name stays)."""
        for parent in _names(class_name, parts[place - 1]) if place else _top_names(class_name):
            for key, value in self.rules.get(parent, {}).get(parts[place], ()):
                if parts[place : place + len(key)] == key:
                    return len(key), value, f"{parent}.{'.'.join(key)}"
        number = self._renumbered(parts, place, result)
        return 1, (number,), "" if number == parts[place] else _RENUMBERING

    def names_of(self, path: Parts) -> Parts:
        """What a rule may call this parent: its class, else its attribute; the network also TopLayer."""
        class_name = self.target.classes.get(path, "")
        return _names(class_name, path[-1]) if path else _top_names(class_name)

    def _renumbered(self, parts: Parts, place: int, golden_container: list[str]) -> str:
        """A pipeline stage's layer number: shifted when both stages hold equally many, numbered from another start."""
        part = parts[place]
        if not (place and parts[place - 1] == _PIPELINE_CHILD and part.isascii() and part.isdigit()):
            return part
        container = parts[:place]
        if self.target.classes.get(container[:-1]) != _PIPELINE_CLASS:
            return part
        ours, theirs = self.target.numbered[container], self.golden.numbered.get(tuple(golden_container), set())
        if len(ours) != len(theirs):
            return part
        return str(int(part) - min(ours) + min(theirs))


def _names(class_name: str, attribute: str) -> Parts:
    return (class_name or attribute,)


def _top_names(class_name: str) -> Parts:
    return (class_name, "TopLayer") if class_name else ("TopLayer",)


class CellRules:
    """Rules of a cell mapping: an exact key wins; else each key that is a run of whole components is replaced once.

    >>> CellRules({"fc2.Dense": "fc2.Linear"}).golden("fc2", "Dense")
    ('fc2', 'Linear', ('fc2.Dense',))
    >>> CellRules({"encoder": "backbone"}).golden("net.encoder.fc", "Dense")
    ('net.backbone.fc', 'Dense', ('encoder',))
    """

    def __init__(self, rules: Mapping[str, str]) -> None:
        self.exact = rules
        #: What each rule is called in messages.
        self.spoken = set(rules)
        self.by_head: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
        for key, value in rules.items():
            parts = tuple(key.split("."))
            self.by_head.setdefault(parts[0], []).append((parts, tuple(value.split("."))))
        for candidates in self.by_head.values():
            candidates.sort(key=lambda rule: -len(rule[0]))

    def golden(self, path: str, class_name: str) -> tuple[str, str, tuple[str, ...]]:
        """The golden (path, class) and the rules that said so, none where no rule speaks of this Cell."""
        whole = f"{path}.{class_name}" if path else class_name
        moved, rules = (self.exact[whole], (whole,)) if whole in self.exact else self._replaced(tuple(whole.split(".")))
        golden_path, _, golden_class = moved.rpartition(".")
        return golden_path, golden_class, rules

    def _replaced(self, parts: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """One pass from the left, so that no rule acts on what another one wrote (``a: b`` beside ``b: a``)."""
        result: list[str] = []
        used: dict[tuple[str, ...], None] = {}
        place = 0
        while place < len(parts):
            for key, value in self.by_head.get(parts[place], ()):
                if key not in used and parts[place : place + len(key)] == key:
                    used[key] = None
                    result.extend(value)
                    place += len(key)
                    break
            else:
                result.append(parts[place])
                place += 1
        return ".".join(result), tuple(".".join(key) for key in used)
