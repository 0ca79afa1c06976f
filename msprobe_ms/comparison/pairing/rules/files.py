"""Read and check mapping files, and say exactly what is wrong in one. What they mean is decided elsewhere.

All are yaml of texts, a few levels deep, so they are read from the event stream: keys and values keep the spelling of
the file (``5`` and ``'5'``, ``on``, ``1e3``), no object is ever built, nesting cannot grow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

from msprobe_ms.comparison.pairing.rules.api import STATES, ApiRule, Place
from msprobe_ms.comparison.pairing.rules.operations import read_operations
from msprobe_ms.dump.dialects import MODULE_PREFIXES
from msprobe_ms.dump.names import JOINED, NAMES_ACCEPTED, is_name
from msprobe_ms.support.errors import MappingError
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr, tr_join
from msprobe_ms.support.yaml_files import FASTEST_LOADER, UnreadableError, not_yaml, read_text

#: Largest mapping file read, in bytes: a data mapping of 100,000 items is about 12 MB.
LARGEST_FILE = 64 * 1024 * 1024

_NULLS = ("", "~", "null", "Null", "NULL")

#: First level of a layer mapping that stands for the network itself: 1.1.0 wrote ``Cell``, later versions ``TopLayer``.
TOP_LAYERS = ("TopLayer", "Cell")

_ACCEPTED = {
    "cell": tr("a flat yaml of target cell to golden module, for example\n    fc2.Dense: fc2.Linear"),
    "layer": tr(
        "a yaml of parent class to renamed children, for example\n    TopLayer:\n      network: "
        "module\n    Attention:\n      out_proj: dense\n      q + k + v: qkv"
    ),
    "data": tr(
        "a flat yaml of target name to golden name, for example\n    "
        "Cell.fc1.Dense.forward.0.output.0: Module.fc1.Linear.forward.0.output.0"
    ),
    "api": tr(
        "a yaml list of rules, for example\n    - ms_api: Functional.flash_attention_score\n      "
        "pt_api: NPU.npu_fusion_attention\n      ms_args: [0, 1, 2]\n      pt_args: [0, 1, 2]\n      "
        "ms_output: [0]\n      pt_output: [0]\n  where ms_api and pt_api are needed; ms_parameters and "
        "ms_parameters_grad may stand beside, as may those of pt_"
    ),
}
_LEVELS = {"cell": 1, "layer": 2, "data": 1}

#: Keys of an API rule: as told and as some documents spell them.
_API_KEYS = {
    f"{side}_{key}": (side, key.removesuffix("s") if key == "outputs" else key)
    for side in ("ms", "pt")
    for key in (*STATES, "outputs")
}


@dataclass(frozen=True, slots=True)
class Mappings:
    """What the user said about names.

    ``cell``   ``{dotted.name.Class}`` → the same of the golden; None when not asked for, empty for a bare ``-cm``
    ``layer``  class of the parent → {child → golden child}, children and values dotted; ``TopLayer`` is the network
    ``data``   full item or entry name → the golden's, None for nothing
    ``api``    rules about APIs; None when not asked for, empty for a bare ``-am``
    ``files``  the files of ``layer`` and ``cell``, as they were named
    ``operations``  kind of operation → kinds of the golden: their calls are paired in order
    ``automatic``  as ``layer``, found by ``mapping.automatic``: counts where nothing else speaks of a module
    """

    cell: dict[str, str] | None = None
    layer: dict[str, dict[str, str]] = field(default_factory=dict)
    data: dict[str, str | None] = field(default_factory=dict)
    api: tuple[ApiRule, ...] | None = None
    automatic: dict[str, dict[str, str]] = field(default_factory=dict)
    operations: dict[str, tuple[str, ...]] = field(default_factory=dict)
    files: tuple[str, ...] = ()


def load_mappings(
    cell: Path | Literal[True] | None = None,
    layer: Path | None = None,
    data: Path | None = None,
    api: Path | Literal[True] | None = None,
    operations: Path | None = None,
) -> Mappings:
    """Read the mapping files that were given; True is the bare flag (Cell→Module, nothing renamed; built-in APIs).

    Raises MappingError, naming file, place and what is accepted.
    """
    return Mappings(
        cell=None if cell is None else {} if cell is True else _cell_rules(cell),
        layer={} if layer is None else _layer_rules(layer),
        data={} if data is None else _read("data", data),
        api=None if api is None else () if api is True else _api_rules(api),
        operations={} if operations is None else read_operations(operations),
        files=tuple(str(file) for file in (layer, cell) if isinstance(file, Path)),
    )


def _cell_rules(path: Path) -> dict[str, str]:
    rules = _read("cell", path)
    return {_without_prefix(key): _without_prefix(value) for key, value in rules.items()}


def _without_prefix(name: str) -> str:
    head, dot, rest = name.partition(".")
    return rest if dot and head in MODULE_PREFIXES else name


def _layer_rules(path: Path) -> dict[str, dict[str, str]]:
    """Text after "(" in a value is a note of the writer (a class name) and ignored."""
    rules: dict[str, dict[str, str]] = {}
    for parent, children in _read("layer", path).items():
        checked = rules.setdefault("TopLayer" if parent in TOP_LAYERS else parent, {})
        for child, value in children.items():
            name, golden = _spaced(child), _spaced(value.partition("(")[0])
            parts = [*name.split(JOINED), *golden.split(JOINED)]
            if any("" in part.split(".") for part in parts):
                raise _wrong(
                    "layer",
                    path,
                    f"{parent}.{child}",
                    tr("{child}: {value} is no dotted module name", child=repr(child), value=repr(value)),
                )
            if len(parts) > 2 and JOINED in name and JOINED in golden:
                raise _wrong(
                    "layer", path, f"{parent}.{child}", tr("one of the two sides of what is fused is one module")
                )
            if checked.setdefault(name, golden) != golden:
                raise _wrong(
                    "layer", path, f"{parent}.{child}", tr("TopLayer and Cell mean the same and disagree here")
                )
    return rules


def _spaced(name: str) -> str:
    """
    >>> _spaced("q+ k +v")
    'q + k + v'
    """
    return JOINED.join(part.strip(" \t") for part in name.split("+"))


def _api_rules(path: Path) -> tuple[ApiRule, ...]:
    """One rule an API; a rule whose two sides name unequally many items is left out with a warning."""
    rules: dict[str, ApiRule] = {}
    for number, (line, content) in enumerate(_read("api", path, _Reader.rules)):
        place = tr("rule {number} (line {line})", number=number + 1, line=line)
        mindspore, pytorch = (_api_name(path, place, content, key) for key in ("ms_api", "pt_api"))
        if mindspore in rules:
            raise _wrong(
                "api", path, place, tr("ms_api: {mindspore} appears twice; which one is meant?", mindspore=mindspore)
            )
        items: dict[str, dict[str, list[Place]]] = {}
        for key, value in content.items():
            if key in ("ms_api", "pt_api"):
                continue
            if key not in _API_KEYS:
                raise _wrong("api", path, place, tr("{key} is no key of a rule", key=key))
            side, state = _API_KEYS[key]
            if side in items.setdefault(STATES[state], {}):
                raise _wrong(
                    "api", path, place, tr("{key} is there twice, in two spellings; which one is meant?", key=key)
                )
            items[STATES[state]][side] = [_place(path, place, key, text) for text in value]
        uneven = [state for state, sides in items.items() if len(sides.get("ms", ())) != len(sides.get("pt", ()))]
        if uneven:
            logger.warning(
                tr(
                    "API mapping {path}: {place}: {mindspore} names unequally many items of {uneven} on its two "
                    "sides; the rule is ignored",
                    path=path,
                    place=place,
                    mindspore=mindspore,
                    uneven=tr_join(tr(" and "), uneven),
                ),
            )
        else:
            rules[mindspore] = ApiRule(
                mindspore,
                pytorch,
                {state: (sides.get("ms", []), sides.get("pt", [])) for state, sides in items.items()},
            )
    return tuple(rules.values())


def _api_name(path: Path, place: str, content: Mapping[str, Any], key: str) -> str:
    if key not in content:
        raise _wrong("api", path, place, tr("{key} is missing", key=key))
    name = content[key]
    if not isinstance(name, str) or "" in (parts := name.split(".")) or len(parts) < 2:
        raise _wrong(
            "api", path, place, tr("{key}: {name} is no name such as Functional.relu", key=key, name=repr(name))
        )
    return name


def _place(path: Path, place: str, key: str, text: str) -> Place:
    """A place among the items, or for parameters a name."""
    if text.isascii() and text.isdigit():
        return int(text)
    if text.startswith("-"):
        raise _wrong("api", path, place, tr("{key}: {text} is no place; they are counted from 0", key=key, text=text))
    return text


def _read(kind: str, path: Path, part: Callable[[_Reader], Any] | None = None) -> Any:
    """The file's texts as a dict (of dicts, for a layer mapping), or what ``part`` reads."""
    try:
        reader = _Reader(kind, path, yaml.parse(read_text(path, LARGEST_FILE), Loader=FASTEST_LOADER))
        return part(reader) if part else reader.document()
    except UnreadableError as error:
        raise MappingError(tr("{kind} mapping {path}: {error}", kind=kind, path=path, error=error)) from None
    except yaml.YAMLError as error:
        raise MappingError(
            tr(
                "{kind} mapping {path}: {not_yaml}.\n  Accepted: {accepted}",
                kind=kind,
                path=path,
                not_yaml=not_yaml(error),
                accepted=_ACCEPTED[kind],
            )
        ) from None


def _wrong(kind: str, path: Path, place: str, what: str) -> MappingError:
    return MappingError(
        tr(
            "{kind} mapping {path}: {place}: {what}.\n  Accepted: {accepted}",
            kind=kind,
            path=path,
            place=place,
            what=what,
            accepted=_ACCEPTED[kind],
        )
    )


class _Reader:
    """Builds the texts from yaml events; every refusal knows its key path and line."""

    def __init__(self, kind: str, path: Path, events: Iterator[Any]) -> None:
        self.kind, self.path, self.events = kind, path, events

    def document(self) -> dict[str, Any]:
        event = self.first()
        if event is None:
            return {}
        if not isinstance(event, yaml.MappingStartEvent):
            raise self.error((), event, tr("{spoken} where names are mapped to names", spoken=_spoken(event)))
        content = self.mapping((), _LEVELS[self.kind])
        self.end()
        return content

    def rules(self) -> list[tuple[int, dict[str, Any]]]:
        """A list of mappings or a single one, each with its line; values are texts or lists of texts."""
        event: Any = self.first()
        found: list[tuple[int, dict[str, Any]]] = []
        if event is None:
            return found
        several = isinstance(event, yaml.SequenceStartEvent)
        each: Any
        for each in self.events if several else iter((event,)):
            if isinstance(each, yaml.SequenceEndEvent):
                break
            if not isinstance(each, yaml.MappingStartEvent):
                raise self.error((), each, tr("{spoken} where a rule is expected", spoken=_spoken(each)))
            found.append((each.start_mark.line + 1 if each.start_mark else 0, self.mapping((), 1)))
        self.end()
        return found

    def first(self) -> Any:
        """The event the document begins with; None when it is empty."""
        event = next(self.events)
        while isinstance(event, (yaml.StreamStartEvent, yaml.DocumentStartEvent)):
            event = next(self.events)
        if isinstance(event, yaml.StreamEndEvent) or _is_null(event):
            logger.warning(
                tr("{kind} mapping {path} is empty: nothing is renamed by it", kind=self.kind, path=self.path)
            )
            return None
        return event

    def end(self) -> None:
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                raise self.error((), event, tr("a second document; one is read"))

    def mapping(self, keys: tuple[str, ...], levels: int) -> dict[str, Any]:
        content: dict[str, Any] = {}
        for event in self.events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            if not isinstance(event, yaml.ScalarEvent) or not event.value or event.value == "<<":
                raise self.error(keys, event, tr("{spoken} as a key; a key is a name", spoken=_spoken(event)))
            self.check_name(keys, event)
            here = (*keys, event.value)
            if event.value in content:
                raise self.error(here, event, tr("this key appears twice; which one is meant?"))
            found = next(self.events)
            self.check_name(here, found)
            content[event.value] = self.value(here, found, levels)
        return content

    def value(self, keys: tuple[str, ...], event: Any, levels: int) -> Any:
        if levels > 1:
            if isinstance(event, yaml.MappingStartEvent):
                return self.mapping(keys, levels - 1)
            if _is_null(event):
                return {}
            raise self.error(
                keys, event, tr("{spoken} where the renamed children of this class are expected", spoken=_spoken(event))
            )
        if self.kind == "api" and not keys[-1].endswith("_api"):
            return self.places(keys, event)
        if isinstance(event, yaml.ScalarEvent) and not _is_null(event) and event.value:
            return event.value
        if self.kind == "data" and _is_null(event) and event.value:
            return None
        raise self.error(keys, event, tr("{spoken} where one golden name is expected", spoken=_spoken(event)))

    def places(self, keys: tuple[str, ...], event: Any) -> list[str]:
        """A list of texts, or one of them alone."""
        several = isinstance(event, yaml.SequenceStartEvent)
        found: list[str] = []
        for each in self.events if several else iter((event,)):
            if isinstance(each, yaml.SequenceEndEvent):
                break
            if not isinstance(each, yaml.ScalarEvent) or _is_null(each) or not each.value:
                raise self.error(keys, each, tr("{spoken} where places of items are expected", spoken=_spoken(each)))
            found.append(each.value)
        return found

    def check_name(self, keys: tuple[str, ...], event: Any) -> None:
        """Refuse a text that is too long for a name."""
        if isinstance(event, yaml.ScalarEvent) and not is_name(event.value):
            raise self.error(
                keys,
                event,
                tr("{spoken}… is too long; {names_accepted}", spoken=_spoken(event), names_accepted=NAMES_ACCEPTED),
            )

    def error(self, keys: tuple[str, ...], event: Any, what: str) -> MappingError:
        place = tr("line {line}", line=event.start_mark.line + 1)
        return _wrong(self.kind, self.path, f"{' → '.join(keys)} ({place})" if keys else place, what)


def _is_null(event: Any) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.implicit[0] and event.value in _NULLS


def _spoken(event: Any) -> str:
    """What an event is, in words a person uses."""
    if isinstance(event, yaml.ScalarEvent):
        return (
            tr("nothing")
            if _is_null(event) or not event.value
            else tr("the text {value}", value=repr(event.value[:60]))
        )
    if isinstance(event, yaml.SequenceStartEvent):
        return tr("a list")
    return tr("a mapping") if isinstance(event, yaml.MappingStartEvent) else tr("a yaml alias")
