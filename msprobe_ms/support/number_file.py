"""Yaml files of users that hold numbers below keys: every mistake is told with its line and what is accepted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import yaml

from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr
from msprobe_ms.support.yaml_files import FASTEST_LOADER, UnreadableError, not_yaml, read_shallow

#: Largest file read, in bytes.
_LARGEST_FILE = 2**18


@dataclass(frozen=True)
class NumberFile:
    """A file of thresholds, read as nodes, which know their lines and build no objects; ``1e-6`` is a number here, as
    people mean."""

    path: Path

    def root(self) -> yaml.Node | None:
        """Return the file's content; None where it is empty. Raises UsageError."""
        try:
            return yaml.compose(read_shallow(self.path, _LARGEST_FILE), Loader=FASTEST_LOADER)
        except UnreadableError as error:
            raise UsageError(tr("thresholds {path}: {error}", path=self.path, error=error)) from None
        except yaml.YAMLError as error:
            raise UsageError(tr("thresholds {path}: {not_yaml}", path=self.path, not_yaml=not_yaml(error))) from None

    def number(self, node: yaml.Node, place: str, default: float | None = None) -> float:
        """Return the number of 0 or more that stands at ``place``. Raises UsageError."""
        text = node.value if isinstance(node, yaml.ScalarNode) and not node.style else ""
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and number >= 0):
            so = "" if default is None else tr(" (it is {default:g} by itself)", default=default)
            raise self.wrong(node, f"{place}: {spoken(node)}", tr("a number of 0 or more{so}", so=so))
        return number

    def wrong(self, node: yaml.Node, what: str, accepted: str) -> UsageError:
        """Return the error of what is wrong at a node."""
        return UsageError(
            tr(
                "thresholds {path}: line {line}: {what}; accepted: {accepted}",
                path=self.path,
                line=node.start_mark.line + 1,
                what=what,
                accepted=accepted,
            )
        )


def is_empty(node: yaml.Node) -> bool:
    """Whether a node stands for nothing: ``key:`` without a value."""
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def spoken(node: yaml.Node) -> str:
    """Say in words what a node is."""
    if isinstance(node, yaml.ScalarNode):
        return "nothing" if is_empty(node) or not node.value else repr(node.value[:60])
    return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"
