"""The sample configurations that come with the package: which there are, what each is for, what its keys mean."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.text import suggestion
from msprobe_ms.support.translation import tr, tr_list

_HERE = Path(__file__).parent
FOLDER = _HERE / "samples"


class Sample(NamedTuple):
    """A sample configuration: ``name`` of its file, what it is for, what it costs, its other ``names``."""

    name: str
    purpose: str
    cost: str
    names: list[str]

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.json"


@cache
def samples() -> dict[str, Sample]:
    """Return every sample by the name of its file, the usual ones first."""
    return {
        name: Sample(name, tr(told["purpose"]), tr(told["cost"]), told["names"])
        for name, told in _yaml("samples.yaml").items()
    }


def sample(name: str) -> Sample:
    """Return the sample of a name or purpose. Raises UsageError: there is none of that name."""
    known = {each: found for found in samples().values() for each in (found.name, *found.names)}
    asked = name.lower().removesuffix(".json").replace("-", "_")
    by_lower = {each.lower(): found for each, found in known.items()}
    if asked not in by_lower:
        accepted = tr_list(found.names[0] if found.names else found.name for found in samples().values())
        raise UsageError(
            tr(
                "config: {name} is no sample{suggestion}; accepted are {accepted}",
                name=repr(name),
                suggestion=suggestion(name, known),
                accepted=accepted,
            )
        )
    return by_lower[asked]


def key_lines(path: Path) -> Iterator[str]:
    """Say what each key of a configuration file means, in the order of the file."""
    content = json.loads(path.read_text(encoding="utf-8"))
    meanings, task = _yaml("keys.yaml"), content.get("task")
    width = max(len(key) for key in meanings)
    for key, value in content.items():
        if not isinstance(value, dict):
            yield _line(f"  {key:<{width}}", meanings.get(key))
    for key in content.get(task, {}):
        yield _line(f"  {key:<{width}}", meanings.get(key))


@cache
def _yaml(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((_HERE / name).read_text(encoding="utf-8"))
    return content


def _line(key: str, meaning: str | None) -> str:
    return f"{key}  " + tr(meaning) if meaning else key.rstrip()
