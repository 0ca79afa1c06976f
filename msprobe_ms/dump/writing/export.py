"""Write dump.json, stack.json, construct.json (at level debug: debug.json) from a journal, each whole or absent.

Dumps whose process died before it could do so are recovered the same way.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, NamedTuple

from msprobe_ms.dump.names import DEBUG, INCOMPLETE, PARAMETERS_GRAD, RECOVERED
from msprobe_ms.dump.writing.contents import Contents, Envelope, IndexedEntry, Kept, read_contents
from msprobe_ms.dump.writing.journal import JOURNAL_NAME, is_being_written
from msprobe_ms.dump.writing.json_text import Value, encode_text, value_text
from msprobe_ms.support.errors import DumpFormatError, MsprobeError
from msprobe_ms.support.files import Permissions
from msprobe_ms.support.folder import Folder
from msprobe_ms.support.translation import tr

#: Bytes of a journal that are held while it is exported; a longer one is read field by field.
_READ_AT_ONCE = 16 << 20

#: Called once per exported entry with how many are done and how many there are; for progress bars.
Progress = Callable[[int, int], object]


def export(path: Path, *, progress: Progress | None = None, recovered: bool = False) -> int:
    """Write the three files of the folder at ``path`` from its journal, with the permissions that this has.

    Returns the number of entries. Otherwise as `export_into`.
    """
    folder = Folder(path)
    folder.permissions = Permissions.like(folder.stat(JOURNAL_NAME).st_mode)
    return export_into(folder, progress=progress, recovered=recovered).entries


class Exported(NamedTuple):
    """How many entries were exported, from how many bytes of the journal, into how many of dump.json (debug.json)."""

    entries: int
    journal: int
    dump: int


def export_into(
    folder: Folder,
    *,
    progress: Progress | None = None,
    recovered: bool = False,
    incomplete: str = "",
    kept: Kept | None = None,
) -> Exported:
    """Write the three files of ``folder`` from its journal, which is not read for what was ``kept`` of it.

    ``recovered`` is noted in dump.json: its process died, what it would have recorded later is missing. So is
    ``incomplete``, which says what could not be recorded.

    Raises DumpFormatError when the journal is no journal or has no envelope, OSError when the disk refuses.
    """
    with folder.open(JOURNAL_NAME) as file, _quick(file) as journal:
        path = folder.path / JOURNAL_NAME
        contents = kept.contents if kept is not None and kept.is_of(journal) else read_contents(journal, path)
        envelope = contents.envelope
        if envelope is None:
            raise DumpFormatError(
                tr("{path}: the journal's first record is missing or damaged; nothing to export", path=path)
            )
        # dump.json goes last: whoever sees it sees its companions too.
        saved = envelope.level == DEBUG
        if envelope.extra_info and not saved:
            with folder.replacing("stack.json") as file:
                write_json(file, _stack(contents))
            with folder.replacing("construct.json") as file:
                write_json(file, {} if envelope.level == "L1" else _construct(contents))
        if envelope.dump_data_dir is not None:  # where it is now: a dump may have been moved since its journal began
            data_dir = path.parent.resolve() / Path(envelope.dump_data_dir).name
            envelope = envelope._replace(dump_data_dir=str(data_dir))
        with folder.replacing("debug.json" if saved else "dump.json") as file:
            _write_dump(envelope, contents, journal, file, progress)
            marks = {RECOVERED: recovered, INCOMPLETE: incomplete}
            file.write("".join(f',\n "{key}": {json.dumps(mark)}' for key, mark in marks.items() if mark).encode())
            file.write(b"\n}")
            size = file.tell()
    return Exported(len(contents.entries), contents.length, size)


def _quick(journal: BinaryIO) -> BinaryIO:
    """The same bytes where single fields are read without asking the system for each, unless they are many."""
    size = journal.seek(0, os.SEEK_END)
    journal.seek(0)
    return BytesIO(journal.read()) if size <= _READ_AT_ONCE else journal


def dump_head(envelope: Envelope) -> bytes:
    """How a dump.json begins, to the opening bracket of its entries."""
    keys = ("task", "level", "framework", "dump_data_dir")
    head = ",\n".join(f' "{key}": {json.dumps(getattr(envelope, key))}' for key in keys)
    return f'{{\n{head},\n "data": {{'.encode()


def write_json(file: BinaryIO, value: Mapping[str, Value]) -> None:
    """Write a file of the format beside dump.json, and never hold the whole text."""
    separator = "{\n"
    for key, member in value.items():
        text = f"{separator} {encode_text(key)}: {value_text(member, 1)}"
        file.write(text.encode("utf-8", "surrogatepass"))
        separator = ",\n"
    file.write(b"\n}" if value else b"{}")


def _stack(contents: Contents) -> dict[str, list[Sequence[str]]]:
    names: dict[int, list[str]] = {}
    for name, part in contents.entries.items():
        if part.call_site is not None:
            names.setdefault(part.call_site, []).append(name)
    return {str(number): [names[site], contents.call_sites.get(site, [])] for number, site in enumerate(names)}


def _construct(contents: Contents) -> dict[str, str | None]:
    """Parents of modules and of what runs in them; at L1 there are no modules and the file stays empty."""
    return {
        name: part.parent
        for name, part in contents.entries.items()
        if f".{PARAMETERS_GRAD}." not in name and not _is_value(name)
    }


def _is_value(name: str) -> bool:
    """Whether the entry is a saved value and no call."""
    return name.endswith(f".{DEBUG}")


def _write_dump(
    envelope: Envelope, contents: Contents, journal: BinaryIO, target: BinaryIO, progress: Progress | None
) -> None:
    target.write(dump_head(envelope))
    saved, separator = envelope.level == DEBUG, b"\n"
    for done, (name, part) in enumerate(contents.entries.items(), 1):
        body = _body(part, journal, saved=saved or _is_value(name))
        target.write(separator + f"  {encode_text(name)}: ".encode() + body)
        separator = b",\n"
        if progress is not None:
            progress(done, len(contents.entries))
    target.write(b"\n }" if contents.entries else b"}")


def _body(part: IndexedEntry, journal: BinaryIO, *, saved: bool) -> bytes:
    fields = _fields(part, journal)
    if saved and fields:
        return fields[0]  # a saved value is the whole entry
    return b"{\n" + b",\n".join(fields) + b"\n  }" if fields else b"{}"


def _fields(part: IndexedEntry, journal: BinaryIO) -> list[bytes]:
    texts = []
    for offset, length in part.fields.values():
        journal.seek(offset)
        texts.append(journal.read(length))
    return texts


#: Why a dump is not recovered: what was exported from outside, its process would take for its own.
_STILL_WRITTEN = tr(
    "its process is still writing it, and completes it when the step is over; to see before that what it has recorded, "
    "copy the folder and recover the copy"
)


class Recovered(NamedTuple):
    """One rebuilt dump, or why it could not be."""

    folder: Path
    entries: int
    problem: str = ""


def recover(path: Path) -> Iterator[Recovered]:
    """Export every journal in or below ``path``; journals stay where they are, so doing it twice does no harm.

    A dump that its process is still writing is left alone.

    Raises DumpFormatError when ``path`` does not exist or holds no journal.
    """
    if not path.is_dir():
        raise DumpFormatError(
            tr("{path}: not a folder; give a dump folder, one of its steps, or a rank of a step", path=path)
        )
    journals = sorted(path.rglob(JOURNAL_NAME))
    if not journals:
        raise DumpFormatError(
            tr(
                "{path}: nothing to recover here or below: no {journal_name}. A dump that ended in good "
                "order has none; its dump.json is complete",
                path=path,
                journal_name=JOURNAL_NAME,
            )
        )
    for journal in journals:
        if is_being_written(journal):
            yield Recovered(journal.parent, 0, _STILL_WRITTEN)
            continue
        try:
            yield Recovered(journal.parent, export(journal.parent, recovered=True))
        except (MsprobeError, OSError) as error:
            yield Recovered(journal.parent, 0, str(error))
