"""Thresholds of judging: one file of the package, whose figures a user's yaml file changes by the same keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from msprobe_ms.support.number_file import NumberFile, is_empty, spoken
from msprobe_ms.support.text import suggestion
from msprobe_ms.support.translation import tr, tr_list

#: Tables whose keys the user chooses: names of APIs.
_OPEN = frozenset({"own.apis"})

_DEFAULTS = Path(__file__).with_name("thresholds.yaml")

Table = Mapping[str, Any]


@dataclass(frozen=True)
class Thresholds:
    """All thresholds, laid out as ``thresholds.yaml``."""

    tables: Table

    def table(self, *keys: str) -> Mapping[str, Any]:
        """Return a table by its path; an empty one where a dtype has none."""
        found: Any = self.tables[keys[0]]
        for key in keys[1:]:
            found = found.get(key, {})
        return found

    def number(self, *keys: str) -> float:
        """Return one threshold. Raises KeyError where there is none of this path."""
        found: Any = self.tables
        for key in keys:
            found = found[key]
        return found


def load_thresholds(path: Path | None = None) -> Thresholds:
    """Read the thresholds, with what the user's file changes.

    :raises UsageError: naming file, line, key and what is accepted
    """
    return _defaults() if path is None else Thresholds(_Reader(path).changed(_defaults().tables))


@lru_cache(maxsize=1)
def _defaults() -> Thresholds:
    return Thresholds(_Reader(_DEFAULTS).read())


class _Reader(NumberFile):
    """Reads what a file changes."""

    def read(self) -> Table:
        """The file as it is, without defaults."""
        return self._read(self.root(), tr("the file"))

    def changed(self, defaults: Table) -> Table:
        """The defaults with what the file changes."""
        root = self.root()
        return defaults if root is None else self._merged(root, defaults, "")

    def _read(self, node: yaml.Node | None, place: str) -> Any:
        if isinstance(node, yaml.MappingNode):
            return {key.value: self._read(value, f"{place}.{key.value}") for key, value in node.value}
        assert node is not None
        return self.number(node, place, None)

    def _merged(self, node: yaml.Node, defaults: Table, place: str) -> Table:
        if is_empty(node):
            return defaults
        keys = tr("names of APIs") if place in _OPEN else tr_list(defaults)
        here = place or tr("the file")
        if not isinstance(node, yaml.MappingNode):
            raise self.wrong(
                node,
                tr("{here} holds {what}", here=here, what=spoken(node)),
                tr("a mapping with keys out of {keys}", keys=keys),
            )
        merged: dict[str, Any] = dict(defaults)
        seen = set()
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            if not name or (name not in defaults and place not in _OPEN):
                raise self.wrong(
                    key,
                    tr(
                        "{here}: {key} is no threshold{suggestion}",
                        here=here,
                        key=spoken(key),
                        suggestion=suggestion(name, defaults),
                    ),
                    keys,
                )
            if name in seen:
                raise self.wrong(key, tr("{here}: {name} appears twice", here=here, name=name), tr("one value of each"))
            seen.add(name)
            inner, default = f"{place}.{name}" if place else name, defaults.get(name)
            if isinstance(default, Mapping):
                merged[name] = self._merged(value, default, inner)
            else:
                merged[name] = self.number(value, inner, default)
        return merged
