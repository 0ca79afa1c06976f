"""Dumps on disk → ``Dump``: dump.json (or debug.json), stack.json and construct.json of every known version (§6)."""

from __future__ import annotations

import gc
import json
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from msprobe_ms.errors import DumpFormatError
from msprobe_ms.log import logger
from msprobe_ms.names import DEBUG, PARAMETERS_GRAD, RECOMPUTE, SCOPE, parse_entry
from msprobe_ms.store.find import DUMP_FILES, dump_file, find_dumps
from msprobe_ms.store.flatten import DEEPEST, SECTION_KEYS, call_items, gradient_items, saved_items
from msprobe_ms.store.model import Dump, Entry, Item
from msprobe_ms.store.tensors import TensorSource

__all__ = ["find_dumps", "read_dump"]

FRAMEWORKS = ("mindspore", "pytorch", "mindtorch")

_ENVELOPE = {"task", "level", "framework", "dump_data_dir", "data"}
_KNOWN_KEYS = SECTION_KEYS | {RECOMPUTE, SCOPE}
_MICRO_STEPS = "megatron_micro_step_number"
#: Prefixes of entries that only one family of frameworks has.
_MINDSPORE_PREFIXES = {"Cell", "Primitive", "Mint", "MintFunctional", "MintDistributed", "Jit"}
_TORCH_PREFIXES = {"Module", "Torch", "NPU", "VF", "Aten"}


def read_dump(path: Path) -> Dump:
    """One rank's dump of one step: ``path`` is a dump.json (debug.json) or the folder that holds it.

    Leaves, entries and files beside dump.json that are odd are kept as far as they can be understood: stack.json and
    construct.json may be missing or damaged.

    :raises DumpFormatError: dump.json is missing, is not JSON, or not that of a dump
    """
    if path.is_dir():
        file = dump_file(path)
        if file is None:
            raise DumpFormatError(f"{path}: holds no dump; accepted is a folder with {' or '.join(DUMP_FILES)}")
        path = file
    with _no_garbage_collection():
        envelope = _read_object(path)
        data = envelope.get("data")
        if not isinstance(data, dict):
            raise DumpFormatError(f"{path}: 'data' is {_kind(data)}; accepted is an object of entries")
        try:
            entries = _entries(path, data, envelope.get("level"))
        except RecursionError as error:
            raise DumpFormatError(f"{path}: nested deeper than {DEEPEST} levels") from error
        extra = {key: value for key, value in envelope.items() if key not in _ENVELOPE}
        _add_stacks(path.with_name("stack.json"), entries)
        _add_parents(path.with_name("construct.json"), entries, extra)
    recorded = envelope.get("dump_data_dir")
    task = _text(envelope, "task")
    profile = "latest" if "framework" in envelope else "v110"
    mode = _mode(task, entries)
    if mode == "md5" and profile == "latest":
        _add_value_checksums(entries)
    return Dump(
        path=path,
        task=task,
        level=_text(envelope, "level"),
        framework=_framework(envelope.get("framework"), entries),
        mode=mode,
        profile=profile,
        entries=entries,
        tensors=TensorSource(path.parent, recorded if isinstance(recorded, str) else None),
        extra=extra,
    )


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """A dump is some 100,000 objects without a cycle: looking for garbage among them takes longer than reading them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; ``NaN`` and ``Infinity`` are numbers of the format."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DumpFormatError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not raw.strip():
        raise DumpFormatError(f"{path}: empty: the dumping process ended before it was written")
    try:
        value = json.loads(raw)
        if b"\\u" in raw or b"\xed" in raw:  # only there can they come from
            value = _without_lone_surrogates(value)
    except RecursionError as error:
        raise DumpFormatError(f"{path}: nested deeper than {DEEPEST} levels") from error
    except ValueError as error:
        raise DumpFormatError(f"{path}: not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise DumpFormatError(f"{path}: holds {_kind(value)}; accepted is an object")
    return value


def _without_lone_surrogates(value: Any) -> Any:
    """``value`` with ``?`` for half characters (an escape ``\\ud800`` alone), which nothing can print or write."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.loads(text.encode("utf-8", "replace"))
    return value


def _entries(path: Path, data: dict[str, Any], level: object) -> dict[str, Entry]:
    entries = {}
    strangers: list[str] = []
    for name, body in data.items():
        parsed = parse_entry(name)
        direction = parsed.direction if parsed else ""
        try:
            if direction == DEBUG or level == DEBUG:
                items = saved_items(name, body)
            elif body is None:
                items = []
            elif not isinstance(body, dict):
                raise DumpFormatError(f"entry {name!r}: is {_kind(body)}; accepted is an object")
            elif direction == PARAMETERS_GRAD or re.search(r"\.parameters_grad(\.\d+)?$", name):
                items = gradient_items(name, body)
            else:
                items = call_items(name, body)
                strangers += (f"{name}: {key}" for key in body if key not in _KNOWN_KEYS)
        except DumpFormatError as error:
            raise DumpFormatError(f"{path}: {error}") from error
        entries[name] = Entry(name, parsed, items)
        if isinstance(body, dict):
            entries[name].recomputed = body.get(RECOMPUTE) is True
            entries[name].scope = scope if isinstance(scope := body.get(SCOPE), str) else ""
    if strangers:
        logger.warning("%s: %d unknown keys in entries are left out, first %s", path, len(strangers), strangers[0])
    return entries


def _beside(path: Path) -> dict[str, Any]:
    """A file beside dump.json: without it a dump is poorer, not useless."""
    if not path.exists():
        return {}
    try:
        return _read_object(path)
    except DumpFormatError as error:
        logger.warning("%s; the dump is read without it", error)
        return {}


def _add_stacks(path: Path, entries: dict[str, Entry]) -> None:
    """Both shapes of stack.json: ``{entry: [frame, …]}`` and ``{number: [[entry, …], [frame, …]]}``."""
    for key, value in _beside(path).items():
        if not isinstance(value, list):
            continue
        names, frames = value if _is_shared_stack(value) else ([key], value)
        stack = tuple(frame for frame in frames if isinstance(frame, str))
        for name in names:
            if isinstance(name, str) and (entry := entries.get(name)):
                entry.stack = stack


def _is_shared_stack(value: list[Any]) -> bool:
    return len(value) == 2 and isinstance(value[0], list) and isinstance(value[1], list)


def _add_parents(path: Path, entries: dict[str, Entry], extra: dict[str, Any]) -> None:
    """``{child: parent}``, where Megatron's pipelines write ``[parent, micro step]``."""
    construct = _beside(path)
    if _MICRO_STEPS in construct:
        extra[_MICRO_STEPS] = construct[_MICRO_STEPS]
    for child, parent in construct.items():
        if isinstance(parent, list) and parent:
            parent = parent[0]
        if isinstance(parent, str) and (entry := entries.get(child)):
            entry.parent = parent


def _items(entries: dict[str, Entry]) -> Iterator[Item]:
    return (item for entry in entries.values() for item in entry.items)


def _mode(task: str, entries: dict[str, Entry]) -> str:
    if task in ("tensor", "overflow_check"):
        return "tensor"
    return "md5" if any(item.md5 for item in _items(entries)) else "statistics"


def _add_value_checksums(entries: dict[str, Entry]) -> None:
    """In today's md5 tables a plain value has the checksum of its text (§11.2)."""
    for entry in entries.values():
        for place, item in enumerate(entry.items):
            if item.kind == "value" and item.maximum is not None:
                entry.items[place] = replace(item, md5=f"{zlib.crc32(str(item.maximum).encode()):08x}")


def _framework(recorded: object, entries: dict[str, Entry]) -> str:
    """The framework as recorded; 1.1.0 records none, but types, names of files and of entries tell."""
    if isinstance(recorded, str) and recorded.lower() in FRAMEWORKS:
        return recorded.lower()
    prefixes = {entry.name.split(".", 1)[0] for entry in entries.values()}
    torch_names = bool(prefixes & _TORCH_PREFIXES) and not prefixes & _MINDSPORE_PREFIXES
    tests: tuple[Callable[[Item], str | None], ...] = (_by_type, _by_file)
    for test in tests:
        if found := next(filter(None, map(test, _items(entries))), None):
            # MSAdapter: PyTorch's names over MindSpore's tensors.
            return "mindtorch" if found == "mindspore" and torch_names else found
    return "pytorch" if torch_names else "mindspore"


def _by_type(item: Item) -> str | None:
    family = item.type.partition(".")[0]
    return {"mindspore": "mindspore", "torch": "pytorch"}.get(family)


def _by_file(item: Item) -> str | None:
    suffix = (item.data_name or "").rpartition(".")[2]
    return {"npy": "mindspore", "pt": "pytorch"}.get(suffix)


def _text(envelope: dict[str, Any], key: str) -> str:
    value = envelope.get(key)
    return value if isinstance(value, str) else ""


def _kind(value: object) -> str:
    """What a JSON value is, for error texts."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "missing or null"}
    return names.get(type(value), "a number")
