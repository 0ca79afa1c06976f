"""Read dumps from disk: dump.json (or debug.json), stack.json and construct.json of every known version.

The versions: docs/format.md, "Variants that are read".
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from msprobe_ms.dump.columns import ItemSlice, ItemTable
from msprobe_ms.dump.dialects import DIALECTS, MINDSPORE, Dialect, apis_by_prefixes
from msprobe_ms.dump.model import Dump, Entry, Item
from msprobe_ms.dump.names import (
    ATTRIBUTES,
    DEBUG,
    INCOMPLETE,
    NAMES_ACCEPTED,
    PARAMETERS_GRAD,
    RECOMPUTE,
    RECOVERED,
    SCOPE,
    EntryName,
    counted_entries,
    is_name,
    parse_entry,
)
from msprobe_ms.dump.reading.alike_calls import AlikeCalls
from msprobe_ms.dump.reading.halves import join_halves
from msprobe_ms.dump.reading.items import DEEPEST, SECTION_KEYS, TensorSource, call_items, gradient_items, saved_items
from msprobe_ms.dump.reading.json_stream import Taker, kind_of, members
from msprobe_ms.dump.reading.locate import DUMP_FILES, dump_file, find_dumps, folder_of, parts_of, unfinished
from msprobe_ms.dump.writing.journal import JOURNAL_NAME
from msprobe_ms.support.errors import DamagedFileError, DumpFormatError
from msprobe_ms.support.files import leads_out
from msprobe_ms.support.log import logger
from msprobe_ms.support.process import no_garbage_collection
from msprobe_ms.support.translation import tr, tr_join

__all__ = ["find_dumps", "read_dump"]

_ENVELOPE = {"task", "level", "framework", "dump_data_dir", "data"}
_KNOWN_KEYS = SECTION_KEYS | {RECOMPUTE, SCOPE, ATTRIBUTES}
_PARAMETERS_GRAD = re.compile(r"\.parameters_grad(\.\d+)?$")
#: Characters of a dump's own word on what it lacks, and of a name that is too long, that are shown.
_LONGEST_REASON, _SHOWN = 500, 60
_LEVEL = ("", "level")
#: Bytes of a dump.json from which on it pays to learn what its calls have in common.
_MANY_CALLS = 1 << 21
_MICRO_STEPS = "megatron_micro_step_number"
#: What tells the dialect of a dump that does not name its framework; of several the first.
_BY_PACKAGE = {dialect.package: dialect for dialect in reversed(DIALECTS)}
_BY_SUFFIX = {dialect.file_suffix: dialect for dialect in reversed(DIALECTS)}


def read_dump(path: Path, *, sketches: bool = True, like: Dump | None = None) -> Dump:
    """Read one rank's dump of one step; ``path`` is a dump.json (debug.json) or the folder that holds it.

    Where the step has two halves, what ran in compiled graphs and what ran outside of them, ``path`` is what
    ``find_places`` gives, and both are read as one dump. A half that cannot be read is told of by ``damage``.

    Leaves, entries and files beside dump.json that are odd are kept as far as they can be understood: stack.json and
    construct.json may be missing or damaged. Without ``sketches`` items have none: those of a million items take a
    second and 64 MB. Names that ``like`` has as well are read and held once for both.

    :raises DumpFormatError: dump.json is missing, is not JSON, or not that of a dump
    """
    parts, known = parts_of(path), {} if like is None else like.entries
    table = ItemTable(sketches=sketches)
    if len(parts) == 1:
        return _read_file(parts[0], table, known)
    read: list[Dump] = []
    problems: list[DumpFormatError] = []
    for part in parts:
        try:
            read.append(_read_file(part, table, known))
        except DumpFormatError as error:
            problems.append(error)
    if not read:
        raise problems[0]
    with no_garbage_collection():
        dump = join_halves(*read) if len(read) > 1 else read[0]
    unread = (tr("{error}; the other half of the step is read", error=each) for each in problems)
    damage = tr_join("; ", [*unread, *filter(None, [dump.damage])])
    return replace(dump, path=folder_of(path) / DUMP_FILES[0], damage=damage)


def _read_file(path: Path, table: ItemTable, like: Mapping[str, Entry]) -> Dump:
    """Read one dump.json, whose items are added to a table."""
    if path.is_dir():
        file = dump_file(path)
        if file is None:
            raise DumpFormatError(
                tr(
                    "{path}: holds no dump; accepted is a folder with {dump_files}",
                    path=path,
                    dump_files=tr_join(tr(" or "), DUMP_FILES),
                )
            )
        path = file
    before = _version(path) if os.path.exists(path.with_name(JOURNAL_NAME)) else ()
    with no_garbage_collection():
        reading = _Reading(path, like, table)
        reading.read()
        envelope, entries = reading.envelope, reading.entries
        extra = {key: value for key, value in envelope.items() if key not in _ENVELOPE}
        _add_stacks(path.with_name("stack.json"), entries)
        _add_parents(path.with_name("construct.json"), entries, extra)
    recorded = envelope.get("dump_data_dir")
    task = _text(envelope, "task")
    profile = "latest" if "framework" in envelope else "v110"
    mode = _mode(task, table)
    table.value_checksums = mode == "md5" and profile == "latest"
    tensors = TensorSource(path.parent, recorded if isinstance(recorded, str) else None)
    if tensors.elsewhere and mode == "tensor":
        logger.warning(
            tr(
                "{path}: no dump_tensor_data beside it: tensors are taken from {folder}",
                path=path,
                folder=tensors.folder,
            )
        )
    return Dump(
        path=path,
        task=task,
        level=_text(envelope, "level"),
        framework=_framework(envelope.get("framework"), entries),
        mode=mode,
        profile=profile,
        entries=entries,
        tensors=tensors,
        extra=extra,
        damage=reading.damage or _cut_short(path, extra) or _overtaken(path, before),
    )


def _version(path: Path) -> tuple[int, ...]:
    """What differs between a file and the one that replaces it; nothing where there is no file."""
    try:
        state = path.stat()
        return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns
    except OSError:
        return ()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _overtaken(path: Path, before: tuple[int, ...]) -> str:
    """Why what was read, of a dump that was being written, is not what is there now; "" where it is."""
    if not before or _version(path) == before:
        return ""
    return tr("{path}: was written anew while it was read: compare again", path=path)


def _cut_short(path: Path, extra: Mapping[str, Any]) -> str:
    """Why a dump lacks what its process would have recorded later; "" where it ended in good order."""
    if extra.get(RECOVERED) is True:
        return tr(
            "{path}: recovered after its process was killed or could not write it; calls after that are missing",
            path=path,
        )
    if isinstance(lacks := extra.get(INCOMPLETE), str) and lacks:
        shown = "".join(each if each.isprintable() else "_" for each in lacks[:_LONGEST_REASON])
        return tr("{path}: not all could be recorded: {shown}", path=path, shown=shown)
    if advice := unfinished(path.parent, path):
        logger.warning(tr("{parent}: calls are missing in its dump.json: {advice}", parent=path.parent, advice=advice))
        return tr("{path}: calls are missing: {advice}", path=path, advice=advice)
    return ""


class _Reading:
    """What was read of one dump.json so far."""

    def __init__(self, path: Path, like: Mapping[str, Entry], table: ItemTable) -> None:
        self.path, self._like, self.table = path, like, table
        self.envelope: dict[str, Any] = {}
        self.entries: dict[str, Entry] = {}
        self.damage = ""
        self._strangers: list[str] = []

    def read(self) -> None:
        """Read the file; of a damaged one the entries before the damage, when there are any."""
        try:
            for holder, key, value in members(self.path, opened="data", taker=self._taker()):
                if holder:
                    self._add(key, value)
                    continue
                self.envelope[key] = value
                if key == "data" and "level" not in self.envelope:  # which says how to read the entries
                    self.envelope["level"] = _level_behind(self.path)
        except RecursionError as error:
            raise DumpFormatError(
                tr("{path}: nested deeper than {deepest} levels", path=self.path, deepest=DEEPEST)
            ) from error
        except DamagedFileError as error:
            if not self.entries:
                raise
            self.damage = tr(
                "{error}; the {entries} before it are read", error=error, entries=counted_entries(len(self.entries))
            )
            logger.warning("%s", self.damage)
        data = self.envelope.get("data")
        if data != {}:
            raise DumpFormatError(
                tr(
                    "{path}: 'data' is {kind_of}; accepted is an object of entries",
                    path=self.path,
                    kind_of=kind_of(data),
                )
            )
        if self._strangers:
            count, first = len(self._strangers), self._strangers[0]
            logger.warning(
                tr(
                    "{path}: {count} unknown keys in entries are left out, first {first}",
                    path=self.path,
                    count=count,
                    first=first,
                )
            )

    def _taker(self) -> Taker | None:
        """What takes calls that need no parsing; a small dump has few of a kind, and at level debug there are none."""
        if not AlikeCalls.is_built() or _size(self.path) < _MANY_CALLS:
            return None
        alike = AlikeCalls(self.table, self._add_alike)
        return lambda text, place: (place, 0) if self.envelope.get("level") == DEBUG else alike.take(text, place)

    def _add_alike(self, names: Sequence[str], add: Callable[[Sequence[str]], list[ItemSlice]]) -> None:
        known = [*map(self._known, names)]
        for (name, parsed), items in zip(known, add([name for name, _ in known]), strict=True):
            other = self._like.get(name)
            if other is not None and isinstance(other.items, ItemSlice) and other.items.start == items.start:
                items.start = other.items.start  # one number, not two equal ones
            self.entries[name] = Entry(name, parsed, items)

    def _known(self, name: str) -> tuple[str, EntryName | None]:
        """The name itself, once for both dumps, and taken apart."""
        if not is_name(name):
            raise DumpFormatError(
                tr(
                    "{path}: entry {name}… is too long; {names_accepted}",
                    path=self.path,
                    name=repr(name[:_SHOWN]),
                    names_accepted=NAMES_ACCEPTED,
                )
            )
        if (known := self._like.get(name)) is not None:
            return known.name, known.parsed
        return name, parse_entry(name)

    def _add(self, name: str, body: Any) -> None:
        name, parsed = self._known(name)
        items: Sequence[Item]
        try:
            items = self._items(name, body, parsed.direction if parsed else "")
        except DumpFormatError as error:
            raise DumpFormatError(f"{self.path}: {error}") from error
        entry = self.entries[name] = Entry(name, parsed, items)
        if isinstance(body, dict) and not SECTION_KEYS.issuperset(body):  # as few have more
            entry.recomputed = body.get(RECOMPUTE) is True
            entry.scope = scope if isinstance(scope := body.get(SCOPE), str) else ""
            if isinstance(attributes := body.get(ATTRIBUTES), dict):
                entry.attributes = attributes

    def _items(self, name: str, body: Any, direction: str) -> Sequence[Item]:
        if DEBUG in (direction, self.envelope.get("level")):
            return saved_items(self.table, name, body)
        if body is None:
            return ()
        if not isinstance(body, dict):
            raise DumpFormatError(
                tr("entry {name}: is {kind_of}; accepted is an object", name=repr(name), kind_of=kind_of(body))
            )
        if direction == PARAMETERS_GRAD or (PARAMETERS_GRAD in name and _PARAMETERS_GRAD.search(name)):
            return gradient_items(self.table, name, body)
        if not _KNOWN_KEYS.issuperset(body):
            self._strangers += (f"{name}: {key}" for key in body if key not in _KNOWN_KEYS)
        return call_items(self.table, name, body)


def _level_behind(path: Path) -> Any:
    """The level, where it stands behind the entries."""
    try:
        return next((value for holder, key, value in members(path, opened="data") if (holder, key) == _LEVEL), None)
    except DamagedFileError:
        return None


def _beside(path: Path) -> Iterator[tuple[str, Any]]:
    """The members of a file beside dump.json: without it a dump is poorer, not useless."""
    if not path.exists():
        return
    if leads_out(path, path.parent):
        logger.warning(tr("{path}: a link that leaves the folder; the dump is read without it", path=path))
        return
    try:
        for _, key, value in members(path):
            yield key, value
    except RecursionError:
        logger.warning(
            tr("{path}: nested deeper than {deepest} levels; the dump is read without it", path=path, deepest=DEEPEST)
        )
    except DumpFormatError as error:
        logger.warning(tr("{error}; the dump is read without it", error=error))


def _add_stacks(path: Path, entries: dict[str, Entry]) -> None:
    """Both shapes of stack.json: ``{entry: [frame, …]}`` and ``{number: [[entry, …], [frame, …]]}``."""
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    for key, value in _beside(path):
        if not isinstance(value, list):
            continue
        names, frames = value if _is_shared_stack(value) else ([key], value)
        stack = tuple(frame for frame in frames if isinstance(frame, str))
        stack = shared.setdefault(stack, stack)
        for name in names:
            if isinstance(name, str) and (entry := entries.get(name)):
                entry.stack = stack


def _is_shared_stack(value: list[Any]) -> bool:
    return len(value) == 2 and isinstance(value[0], list) and isinstance(value[1], list)


def _add_parents(path: Path, entries: dict[str, Entry], extra: dict[str, Any]) -> None:
    """``{child: parent}``, where Megatron's pipelines write ``[parent, micro step]``."""
    too_long = 0
    for child, parent in _beside(path):
        if child == _MICRO_STEPS:
            extra[_MICRO_STEPS] = parent
        if isinstance(parent, list) and parent:
            parent = parent[0]
        if isinstance(parent, str) and (entry := entries.get(child)):
            known = entries.get(parent)
            if known is None and not is_name(parent):
                too_long += 1
                continue
            entry.parent = known.name if known is not None else parent
    if too_long:
        logger.warning(
            tr(
                "{path}: {too_long} calls lie in one whose name is too long, and are taken for calls outside "
                "of all; {names_accepted}",
                path=path,
                too_long=too_long,
                names_accepted=NAMES_ACCEPTED,
            )
        )


def _items(entries: dict[str, Entry]) -> Iterator[Item]:
    return (item for entry in entries.values() for item in entry.items)


def _mode(task: str, table: ItemTable) -> str:
    if task in ("tensor", "overflow_check"):
        return "tensor"
    return "md5" if table.has_checksums else "statistics"


def _framework(recorded: object, entries: dict[str, Entry]) -> str:
    """The framework as recorded; 1.1.0 records none, but types, names of files and of entries tell."""
    if isinstance(recorded, str) and any(recorded.lower() == dialect.name for dialect in DIALECTS):
        return recorded.lower()
    apis = apis_by_prefixes(entry.name.split(".", 1)[0] for entry in entries.values())
    tests: tuple[Callable[[Item], Dialect | None], ...] = (_by_type, _by_file)
    for test in tests:
        if found := next(filter(None, map(test, _items(entries))), None):
            # Its tensors are this dialect's; its names may be those of another.
            wanted = (found.tensor_type, apis)
            return next((each.name for each in DIALECTS if (each.tensor_type, each.apis) == wanted), found.name)
    return apis or MINDSPORE.name


def _by_type(item: Item) -> Dialect | None:
    return _BY_PACKAGE.get(item.type.partition(".")[0])


def _by_file(item: Item) -> Dialect | None:
    return _BY_SUFFIX.get(f".{(item.data_name or '').rpartition('.')[2]}")


def _text(envelope: dict[str, Any], key: str) -> str:
    value = envelope.get(key)
    return value if isinstance(value, str) else ""
