"""Read thresholds that a user changed: a yaml file of the values by which rows are measured and judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from msprobe_ms.arrays.custom_metrics import Algorithm
from msprobe_ms.comparison.measuring.tolerances import Tolerances
from msprobe_ms.comparison.reporting.profiles import PROFILES
from msprobe_ms.comparison.reporting.profiles.base import Profile
from msprobe_ms.comparison.reporting.profiles.latest import Latest, LatestThresholds
from msprobe_ms.comparison.reporting.profiles.maca import Maca
from msprobe_ms.comparison.reporting.profiles.own import Own
from msprobe_ms.comparison.reporting.profiles.v110 import V110, V110Thresholds
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.number_file import NumberFile, is_empty, spoken
from msprobe_ms.support.translation import tr, tr_list

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Thresholded = TypeVar("Thresholded", bound=DataclassInstance)

#: Largest file read, in bytes: all thresholds there are take 2 KB.
_LARGEST_FILE = 2**18

#: Section → what its keys are the fields of. ``own`` judges by the tolerances alone.
SECTIONS: Mapping[str, type] = {"v110": V110Thresholds, "latest": LatestThresholds, "tolerances": Tolerances}


@dataclass(frozen=True)
class Thresholds:
    """The thresholds a user changed, by section and name; none by default."""

    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def applied(self, section: str, values: Thresholded) -> Thresholded:
        """Return ``values`` with the changes of their section; tables (``roundings``) keep what is not changed."""
        changes = dict(self.changes.get(section, {}))
        for name, value in changes.items():
            if isinstance(value, Mapping):
                changes[name] = {**getattr(values, name), **value}
        return replace(values, **changes)

    def profile(self, name: str, algorithms: tuple[Algorithm, ...] = ()) -> Profile:
        """Return the profile of this name with thresholds changed and the user's metrics in it.

        :raises UsageError: there is no such profile
        """
        if name not in PROFILES:
            raise UsageError(
                tr(
                    "profile {name} is not accepted; accepted are {profiles}",
                    name=repr(name),
                    profiles=tr_list(PROFILES),
                )
            )
        if name == "v110":
            return V110(thresholds=self.applied(name, V110Thresholds()), algorithms=algorithms)
        if name == "latest":
            return Latest(thresholds=self.applied(name, LatestThresholds()), algorithms=algorithms)
        return Maca(algorithms=algorithms) if name == "maca" else Own(algorithms=algorithms)

    def tolerances(self) -> Tolerances:
        return self.applied("tolerances", Tolerances())


def load_thresholds(path: Path | None) -> Thresholds:
    """Read the thresholds of a file; without one, none are changed.

    :raises UsageError: naming file, line, key and what is accepted
    """
    return Thresholds() if path is None else Thresholds(_Reader(path).sections())


class _Reader(NumberFile):
    """Reads what a file changes."""

    def sections(self) -> dict[str, dict[str, Any]]:
        root = self.root()
        if root is None:
            return {}
        return {section: self._values(section, node) for section, node in self._items(root, "the file", list(SECTIONS))}

    def _values(self, section: str, node: yaml.Node) -> dict[str, Any]:
        defaults = SECTIONS[section]()
        names = [each.name for each in fields(SECTIONS[section])]
        found: dict[str, Any] = {}
        for name, value in self._items(node, section, names):
            default = getattr(defaults, name)
            if isinstance(default, Mapping):
                items = self._items(value, f"{section}.{name}", list(default))
                found[name] = {key: self.number(each, f"{section}.{name}.{key}") for key, each in items}
            else:
                found[name] = self.number(value, f"{section}.{name}", default)
        return found

    def _items(self, node: yaml.Node, place: str, accepted: list[str]) -> list[tuple[str, yaml.Node]]:
        """The keys of a mapping with their values; an empty one has none."""
        if is_empty(node):
            return []
        if not isinstance(node, yaml.MappingNode):
            raise self.wrong(
                node,
                tr("{place} holds {spoken}", place=place, spoken=spoken(node)),
                tr("a mapping with keys out of {accepted}", accepted=tr_list(accepted)),
            )
        items: dict[str, yaml.Node] = {}
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            if name not in accepted:
                raise self.wrong(
                    key, tr("{place}: {spoken} is no threshold", place=place, spoken=spoken(key)), tr_list(accepted)
                )
            if name in items:
                raise self.wrong(
                    key, tr("{place}: {name} appears twice", place=place, name=name), tr("one value of each")
                )
            items[name] = value
        return list(items.items())
