"""Write dump.json, stack.json, construct.json (at level debug: debug.json) from a journal, each whole or absent.

Dumps whose process died before it could do so are recovered the same way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

from msprobe_ms.dump.names import DEBUG, INCOMPLETE, PARAMETERS_GRAD, RECOVERED
from msprobe_ms.dump.writing.journal import JOURNAL_NAME, Contents, Envelope, IndexedEntry
from msprobe_ms.dump.writing.json_text import Value, encode_text, value_text
from msprobe_ms.support.errors import DumpFormatError, MsprobeError
from msprobe_ms.support.files import DEFAULT, Permissions, replacing

#: Called once per exported entry with how many are done and how many there are; for progress bars.
Progress = Callable[[int, int], object]


def export(folder: Path, *, progress: Progress | None = None, recovered: bool = False, incomplete: str = "") -> int:
    """Write the three files of ``folder`` from its journal, with its permissions, and return the number of entries.

    ``recovered`` is noted in dump.json: its process died, what it would have recorded later is missing. So is
    ``incomplete``, which says what could not be recorded.

    Raises DumpFormatError when the journal is no journal or has no envelope, OSError when the disk refuses.
    """
    contents = Contents(folder / JOURNAL_NAME)
    permissions = Permissions.like(contents.path)
    envelope = contents.envelope
    if envelope is None:
        raise DumpFormatError(f"{contents.path}: the journal's first record is missing or damaged; nothing to export")
    # dump.json goes last: whoever sees it sees its companions too.
    saved = envelope.level == DEBUG
    if envelope.extra_info and not saved:
        write_json(folder / "stack.json", _stack(contents), permissions)
        construct = {} if envelope.level == "L1" else _construct(contents)
        write_json(folder / "construct.json", construct, permissions)
    dump = folder / ("debug.json" if saved else "dump.json")
    with replacing(dump, permissions) as target, contents.path.open("rb") as journal:
        _write_dump(envelope, contents, journal, target, progress)
        marks = {RECOVERED: recovered, INCOMPLETE: incomplete}
        target.write("".join(f',\n "{key}": {json.dumps(mark)}' for key, mark in marks.items() if mark).encode())
        target.write(b"\n}")
    return len(contents.entries)


def dump_head(envelope: Envelope) -> bytes:
    """How a dump.json begins, to the opening bracket of its entries."""
    keys = ("task", "level", "framework", "dump_data_dir")
    head = ",\n".join(f' "{key}": {json.dumps(getattr(envelope, key))}' for key in keys)
    return f'{{\n{head},\n "data": {{'.encode()


def write_json(path: Path, value: Mapping[str, Value], permissions: Permissions = DEFAULT) -> None:
    """Write a file of the format beside dump.json, whole or not at all, and never hold the whole text."""
    with replacing(path, permissions) as file:
        separator = "{\n"
        for key, member in value.items():
            text = f"{separator} {encode_text(key)}: {value_text(member, 1)}"
            file.write(text.encode("utf-8", "surrogatepass"))
            separator = ",\n"
        file.write(b"\n}" if value else b"{}")


def _stack(contents: Contents) -> dict[str, list[list[str]]]:
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
    if envelope.dump_data_dir is not None:  # where it is now: a dump may have been moved since its journal began
        data_dir = contents.path.parent.resolve() / Path(envelope.dump_data_dir).name
        envelope = envelope._replace(dump_data_dir=str(data_dir))
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


class Recovered(NamedTuple):
    """One rebuilt dump, or why it could not be."""

    folder: Path
    entries: int
    problem: str = ""


def recover(path: Path) -> Iterator[Recovered]:
    """Export every journal in or below ``path``; journals stay where they are, so doing it twice does no harm.

    Raises DumpFormatError when ``path`` does not exist or holds no journal.
    """
    if not path.is_dir():
        raise DumpFormatError(f"{path}: not a folder; give a dump folder, one of its steps, or a rank of a step")
    journals = sorted(path.rglob(JOURNAL_NAME))
    if not journals:
        raise DumpFormatError(
            f"{path}: nothing to recover here or below: no {JOURNAL_NAME}. A dump that ended in good order has none; "
            "its dump.json is complete"
        )
    for journal in journals:
        try:
            yield Recovered(journal.parent, export(journal.parent, recovered=True))
        except (MsprobeError, OSError) as error:
            yield Recovered(journal.parent, 0, str(error))
