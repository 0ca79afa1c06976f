"""Name API calls for pairing: by name, by what they do, by family; a rule of the user comes before all."""

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
    """An API's entry, its place among the calls of its scope, and its three names: name, operation, family."""

    entry: Entry
    place: int
    names: tuple[str, str, str]

    @cached_property
    def output_shape(self) -> object:
        """Shape of the first output tensor; None where there is none."""
        items = self.entry.items
        if not isinstance(items, ItemSlice):
            return next((item.shape for item in items if item.state == "output" and item.kind == "tensor"), None)
        # Of a dump that was read no item need be made to be asked this.
        table, numbers = items.table, range(items.start, items.stop)
        sorts = (table.sort(number) for number in numbers if table.state(number) == "output")
        return next((shape for kind, _, _, shape, _ in sorts if kind == "tensor"), None)

    @cached_property
    def output_statistics(self) -> Hashable:
        return output_statistics(self.entry)

    def means(self, word: str) -> bool:
        return word in self.names[OPERATION:]


def output_statistics(entry: Entry) -> Hashable:
    """Return rounded statistics, or checksums, of the output tensors: they identify a call. None without any."""
    tensors = [item for item in entry.items if item.state == "output" and item.kind == "tensor"]
    statistics = [
        item.md5 or f"{item.maximum:.2e} {item.minimum:.2e} {item.norm:.2e}"
        for item in tensors
        if item.md5 or all(isinstance(value, float) for value in (item.maximum, item.minimum, item.norm))
    ]
    return tuple(statistics) or None


class ApiNames:
    """Names of the API calls of one dump; ``rules`` by ``Prefix.api`` of its side."""

    def __init__(self, dump: Dump, rules: Mapping[str, ApiRule]) -> None:
        self.mindspore = apis_of(dump.framework) == MINDSPORE.apis
        self.rules = rules

    def of(self, entry: Entry) -> tuple[str, str, str]:
        """Return name, operation and family of the entry of an API call."""
        parsed = entry.parsed
        assert parsed is not None
        if rule := self.rule(entry):
            return rule.word, rule.word, rule.word
        operation = operation_of(parsed, mindspore=self.mindspore)
        return parsed.name, operation, family_of(operation)

    def rule(self, entry: Entry) -> ApiRule | None:
        """Return the user's rule about an API, if any.

        A primitive goes by ``Primitive.matmul.MatMul`` and by ``Primitive.matmul``.
        """
        parsed = entry.parsed
        if not self.rules or parsed is None or parsed.is_module:
            return None
        names = f"{parsed.prefix}.{parsed.name}", f"{parsed.prefix}.{parsed.name.partition('.')[0]}"
        return next((self.rules[name] for name in names if name in self.rules), None)
