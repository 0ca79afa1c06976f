"""Mapping files: read them, check them, say exactly what is wrong. What they mean is decided elsewhere.

All three are yaml of texts, at most two levels deep, so they are read from the event stream: keys and values keep the
spelling of the file (``5`` and ``'5'``, ``on``, ``1e3``), no object is ever built, nesting cannot grow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from msprobe_ms.errors import MappingError
from msprobe_ms.log import logger

#: Largest mapping file read, in bytes: a data mapping of 100,000 items is about 12 MB.
LARGEST_FILE = 64 * 1024 * 1024

#: libyaml is about eight times faster; both give the same events.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS = ("", "~", "null", "Null", "NULL")

#: First level of a layer mapping that stands for the network itself: 1.1.0 wrote ``Cell``, later versions ``TopLayer``.
TOP_LAYERS = ("TopLayer", "Cell")

_ACCEPTED = {
    "cell": "a flat yaml of target cell to golden module, for example\n    fc2.Dense: fc2.Linear",
    "layer": "a yaml of parent class to renamed children, for example\n"
    "    TopLayer:\n      network: module\n    Attention:\n      out_proj: dense",
    "data": "a flat yaml of target name to golden name, for example\n"
    "    Cell.fc1.Dense.forward.0.output.0: Module.fc1.Linear.forward.0.output.0",
}
_LEVELS = {"cell": 1, "layer": 2, "data": 1}


@dataclass(frozen=True, slots=True)
class Mappings:
    """What the user said about names.

    ``cell``   ``{dotted.name.Class}`` → the same of the golden; None when not asked for, empty for a bare ``-cm``
    ``layer``  class of the parent → {child → golden child}, children and values dotted; ``TopLayer`` is the network
    ``data``   full item or entry name → the golden's
    ``automatic``  as ``layer``, found by ``mapping.automatic``: counts where nothing else speaks of a module
    """

    cell: dict[str, str] | None = None
    layer: dict[str, dict[str, str]] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)
    automatic: dict[str, dict[str, str]] = field(default_factory=dict)


def load_mappings(
    cell: Path | Literal[True] | None = None, layer: Path | None = None, data: Path | None = None
) -> Mappings:
    """Read the mapping files that were given; ``cell=True`` is the bare flag (Cell→Module, nothing renamed).

    Raises MappingError, naming file, place and what is accepted.
    """
    return Mappings(
        cell=None if cell is None else {} if cell is True else _cell_rules(cell),
        layer={} if layer is None else _layer_rules(layer),
        data={} if data is None else _read("data", data),
    )


def _cell_rules(path: Path) -> dict[str, str]:
    rules = _read("cell", path)
    return {_without_prefix(key): _without_prefix(value) for key, value in rules.items()}


def _without_prefix(name: str) -> str:
    head, dot, rest = name.partition(".")
    return rest if dot and head in ("Cell", "Module") else name


def _layer_rules(path: Path) -> dict[str, dict[str, str]]:
    """Text after "(" in a value is a note of the writer (a class name) and ignored."""
    rules: dict[str, dict[str, str]] = {}
    for parent, children in _read("layer", path).items():
        checked = rules.setdefault("TopLayer" if parent in TOP_LAYERS else parent, {})
        for child, value in children.items():
            golden = value.partition("(")[0].strip()
            if not golden or "" in golden.split(".") or "" in child.split("."):
                raise _wrong("layer", path, f"{parent}.{child}", f"{child!r}: {value!r} is no dotted module name")
            if checked.setdefault(child, golden) != golden:
                raise _wrong("layer", path, f"{parent}.{child}", "TopLayer and Cell mean the same and disagree here")
    return rules


def _read(kind: str, path: Path) -> dict[str, Any]:
    """The file's texts as a dict (of dicts, for a layer mapping)."""
    text = _text(kind, path)
    try:
        return _Reader(kind, path, yaml.parse(text, Loader=_LOADER)).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "somewhere"
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise _wrong(kind, path, place, f"this is not yaml: {problem}") from None


def _text(kind: str, path: Path) -> str:
    path = Path(path)
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
    except OSError as error:
        reason = error.strerror or error
        raise MappingError(f"{kind} mapping {path}: {reason}; a readable yaml file is needed") from None
    if len(raw) > LARGEST_FILE:
        raise MappingError(f"{kind} mapping {path}: larger than {LARGEST_FILE // 2**20} MiB, the most that is read")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise MappingError(f"{kind} mapping {path}: line {line} is not UTF-8 text; save the file as UTF-8") from None


def _wrong(kind: str, path: Path, place: str, what: str) -> MappingError:
    return MappingError(f"{kind} mapping {path}: {place}: {what}.\n  Accepted: {_ACCEPTED[kind]}")


class _Reader:
    """Builds the texts from yaml events; every refusal knows its key path and line."""

    def __init__(self, kind: str, path: Path, events: Iterator[Any]) -> None:
        self.kind, self.path, self.events = kind, path, events

    def document(self) -> dict[str, Any]:
        event = next(self.events)
        while isinstance(event, (yaml.StreamStartEvent, yaml.DocumentStartEvent)):
            event = next(self.events)
        if isinstance(event, yaml.StreamEndEvent) or _is_null(event):
            logger.warning("%s mapping %s is empty: nothing is renamed by it", self.kind, self.path)
            return {}
        if not isinstance(event, yaml.MappingStartEvent):
            raise self.error((), event, f"{_spoken(event)} where names are mapped to names")
        content = self.mapping((), _LEVELS[self.kind])
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                raise self.error((), event, "a second document; one is read")
        return content

    def mapping(self, keys: tuple[str, ...], levels: int) -> dict[str, Any]:
        content: dict[str, Any] = {}
        for event in self.events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            if not isinstance(event, yaml.ScalarEvent) or not event.value or event.value == "<<":
                raise self.error(keys, event, f"{_spoken(event)} as a key; a key is a name")
            here = (*keys, event.value)
            if event.value in content:
                raise self.error(here, event, "this key appears twice; which one is meant?")
            content[event.value] = self.value(here, next(self.events), levels)
        return content

    def value(self, keys: tuple[str, ...], event: Any, levels: int) -> Any:
        if levels > 1:
            if isinstance(event, yaml.MappingStartEvent):
                return self.mapping(keys, levels - 1)
            if _is_null(event):
                return {}
            raise self.error(keys, event, f"{_spoken(event)} where the renamed children of this class are expected")
        if isinstance(event, yaml.ScalarEvent) and not _is_null(event) and event.value:
            return event.value
        raise self.error(keys, event, f"{_spoken(event)} where one golden name is expected")

    def error(self, keys: tuple[str, ...], event: Any, what: str) -> MappingError:
        place = f"line {event.start_mark.line + 1}"
        return _wrong(self.kind, self.path, f"{' → '.join(keys)} ({place})" if keys else place, what)


def _is_null(event: Any) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.implicit[0] and event.value in _NULLS


def _spoken(event: Any) -> str:
    """What an event is, in words a person uses."""
    if isinstance(event, yaml.ScalarEvent):
        return "nothing" if _is_null(event) or not event.value else f"the text {event.value[:60]!r}"
    if isinstance(event, yaml.SequenceStartEvent):
        return "a list"
    return "a mapping" if isinstance(event, yaml.MappingStartEvent) else "a yaml alias"
