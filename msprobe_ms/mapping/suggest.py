"""For modules without a twin: the layer mapping that would pair them, guessed from where they stand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msprobe_ms.names import FORWARD

if TYPE_CHECKING:
    from msprobe_ms.compare.model import Pair

Parts = tuple[str, ...]


def suggest(pairs: Sequence[Pair]) -> list[str]:
    """Lines of a layer mapping yaml that would pair what is unmatched; [] when nothing can be said.

    Children of one parent are brought together in execution order: those without a twin on one side beside those
    without one on the other, when both parents have equally many. A guess, for a person to check and paste::

        EncoderLayer:
          attention: self_attention
    """
    ours, theirs = _Modules(), _Modules()
    partner: dict[Parts, Parts] = {(): ()}
    for pair in pairs:
        target = pair.target.parsed if pair.target else None
        golden = pair.golden.parsed if pair.golden else None
        if target and target.is_module and target.direction == FORWARD:
            ours.add(target.name, target.class_name)
        if golden and golden.is_module and golden.direction == FORWARD:
            theirs.add(golden.name, golden.class_name)
        if target and golden and target.is_module and golden.is_module and pair.how:
            partner.setdefault(_parts(target.name), _parts(golden.name))
    rules: dict[str, dict[str, str]] = {}
    for parent in sorted(ours.children, key=len):
        if parent in partner:
            for child, other in _beside(ours.children[parent], theirs.children.get(partner[parent], []), partner):
                partner[child] = other
                name, value = _without_common_end(child[len(parent) :], other[len(partner[parent]) :])
                if name != value:
                    class_name = ours.classes.get(parent, "") if parent else "TopLayer"
                    rules.setdefault(class_name, {}).setdefault(".".join(name), ".".join(value))
    return [
        line
        for parent, children in rules.items()
        for line in (f"{parent}:", *(f"  {a}: {b}" for a, b in children.items()))
    ]


class _Modules:
    """Modules of one side under their nearest ancestor that is one, in execution order."""

    def __init__(self) -> None:
        self.classes: dict[Parts, str] = {}
        self._children: dict[Parts, list[Parts]] | None = None

    def add(self, path: str, class_name: str) -> None:
        self.classes.setdefault(_parts(path), class_name)

    @property
    def children(self) -> dict[Parts, list[Parts]]:
        if self._children is None:
            self._children = {}
            for path in self.classes:
                if path:
                    self._children.setdefault(self._ancestor(path), []).append(path)
        return self._children

    def _ancestor(self, path: Parts) -> Parts:
        for length in range(len(path) - 1, 0, -1):
            if path[:length] in self.classes:
                return path[:length]
        return ()


def _beside(ours: list[Parts], theirs: list[Parts], partner: dict[Parts, Parts]) -> Iterable[tuple[Parts, Parts]]:
    """The unpaired of both, those of the same last name first, the rest in order when equally many."""
    taken = set(partner.values())
    left, others = [path for path in ours if path not in partner], [path for path in theirs if path not in taken]
    by_name = {path[-1]: path for path in others if not path[-1].isdigit()}
    same = [(path, by_name.pop(path[-1])) for path in left if path[-1] in by_name]
    paired, used = {path for path, _ in same}, {path for _, path in same}
    left, others = [path for path in left if path not in paired], [path for path in others if path not in used]
    return same + (list(zip(left, others, strict=True)) if len(left) == len(others) else [])


def _without_common_end(name: Parts, value: Parts) -> tuple[Parts, Parts]:
    """``layers.0`` beside ``blocks.0`` is a rename of ``layers``."""
    while len(name) > 1 and len(value) > 1 and name[-1] == value[-1]:
        name, value = name[:-1], value[:-1]
    return name, value


def _parts(path: str) -> Parts:
    return tuple(path.split(".")) if path else ()
