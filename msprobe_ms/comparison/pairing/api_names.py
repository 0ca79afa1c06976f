"""What an API is called for pairing: by its name, by what it does, by its family; a rule of the user before all."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property

from msprobe_ms.comparison.pairing.operations import family_of, operation_of
from msprobe_ms.comparison.pairing.rules.api import ApiRule
from msprobe_ms.dump.columns import ItemSlice
from msprobe_ms.dump.dialects import MINDSPORE, apis_of
from msprobe_ms.dump.model import Dump, Entry

#: The three ways to call an API alike, from the narrowest to the widest.
NAME, OPERATION, FAMILY = range(3)


@dataclass(frozen=True, eq=False)
class Call:
    """An API's entry, its place among the calls of its scope, and its words: name, operation, family."""

    entry: Entry
    place: int
    words: tuple[str, str, str]

    @cached_property
    def given(self) -> object:
        """The shape of the first tensor it gives out; None where there is none."""
        items = self.entry.items
        if not isinstance(items, ItemSlice):
            return next((item.shape for item in items if item.state == "output" and item.kind == "tensor"), None)
        # Of a dump that was read no item need be made to be asked this.
        table, numbers = items.table, range(items.start, items.stop)
        sorts = (table.sort(number) for number in numbers if table.state(number) == "output")
        return next((shape for kind, _, _, shape, _ in sorts if kind == "tensor"), None)

    @cached_property
    def figures(self) -> Hashable:
        return figures_given(self.entry)

    def means(self, word: str) -> bool:
        return word in self.words[OPERATION:]


def figures_given(entry: Entry) -> Hashable:
    """What tells a call by the tensors it gave out, rounding apart; None where nothing does."""
    tensors = [item for item in entry.items if item.state == "output" and item.kind == "tensor"]
    figures = [
        item.md5 or f"{item.maximum:.2e} {item.minimum:.2e} {item.norm:.2e}"
        for item in tensors
        if item.md5 or all(isinstance(figure, float) for figure in (item.maximum, item.minimum, item.norm))
    ]
    return tuple(figures) or None


class Words:
    """The words of one side; ``rules`` by ``Prefix.api`` of this side."""

    def __init__(self, dump: Dump, rules: Mapping[str, ApiRule]) -> None:
        self.mindspore = apis_of(dump.framework) == MINDSPORE.apis
        self.rules = rules

    def of(self, entry: Entry) -> tuple[str, str, str]:
        """Of an entry that is an API's."""
        parsed = entry.parsed
        assert parsed is not None
        if rule := self.rule(entry):
            return rule.word, rule.word, rule.word
        operation = operation_of(parsed, mindspore=self.mindspore)
        return parsed.name, operation, family_of(operation)

    def rule(self, entry: Entry) -> ApiRule | None:
        """The user's rule about it; a primitive goes by ``Primitive.matmul.MatMul`` and by ``Primitive.matmul``."""
        parsed = entry.parsed
        if not self.rules or parsed is None or parsed.is_module:
            return None
        names = f"{parsed.prefix}.{parsed.name}", f"{parsed.prefix}.{parsed.name.partition('.')[0]}"
        return next((self.rules[name] for name in names if name in self.rules), None)
