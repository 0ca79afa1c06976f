"""What the records of a dump's journal hold: the payload of each kind; and an index, which is what export needs."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from sys import intern
from typing import Any, BinaryIO, NamedTuple

import orjson
from isal import isal_zlib

from msprobe_ms.dump.writing.journal import Record, read_records
from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.translation import tr

#: Kinds of records in a dump.
ENVELOPE = b"D"
CALL_SITE = b"S"
ENTRY = b"E"


class Envelope(NamedTuple):
    """What holds for the whole dump. Without ``extra_info`` it has no call sites and no parents."""

    task: str
    level: str
    framework: str
    dump_data_dir: str | None
    extra_info: bool = True


class IndexedEntry(NamedTuple):
    """Where an entry's fields stand in the journal; an entry may come in several parts, later fields win."""

    fields: dict[str, tuple[int, int]]
    parent: str | None
    call_site: int | None


def encode_envelope(content: Envelope) -> bytes:
    """Encode the payload of an `ENVELOPE` record."""
    return json.dumps(list(content)).encode()


def encode_call_site(number: int, frames: Sequence[str]) -> bytes:
    """Encode the payload of a `CALL_SITE` record."""
    return json.dumps([number, list(frames)]).encode("utf-8", "surrogatepass")


def encode_entry(
    name: str, fields: Sequence[tuple[str, bytes]], parent: str | None, site: int | None, *, stays: bool = False
) -> bytes:
    """Encode the payload of an `ENTRY` record.

    ``fields`` are ``(name, text)`` pairs, the text as it will stand in dump.json (`json_text.field_text`). A part that
    ``stays`` does not move its entry.
    """
    head = _dumped([name, parent, site, [(field, len(text)) for field, text in fields], stays])
    return b"".join([head, b"\n", *[text for _, text in fields]])


def _dumped(value: list[Any]) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # half characters, which only the slower one knows
        return json.dumps(value).encode()


def _loaded(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        return json.loads(text)


class Contents:
    """An index of a journal: what export needs, without the entries' text."""

    def __init__(self) -> None:
        self.envelope: Envelope | None = None
        #: Bytes to the end of the last whole record.
        self.length = 0
        self.call_sites: dict[int, Sequence[str]] = {}
        #: Entry name → its fields' places; in order of each entry's *last* part, which is when its call was complete,
        #: but for parts that stay.
        self.entries: dict[str, IndexedEntry] = {}
        #: What `add_entry` is to be given of parts that are noted and not added yet, in their order: of each its name,
        #: parent, call site, position, whether it stays, and then names and lengths of fields by turns.
        self.noted: deque[tuple[Any, ...]] = deque()

    def add_noted(self) -> None:
        """Add what is noted. Where something interrupts this, entries may lack parts, and the index is of no use."""
        noted = self.noted
        while noted:
            name, parent, site, position, stays, *fields = noted.popleft()
            self.add_entry(name, parent, site, zip(fields[::2], fields[1::2], strict=True), position, stays)

    def kept(self, length: int, checksum: int) -> Kept:
        """Return what is known by now, of a journal of ``length`` bytes with that CRC-32."""
        self.add_noted()
        return Kept(self.copy(length), checksum)

    def copy(self, length: int) -> Contents:
        """Return the same, to the end of ``length`` bytes, which what is added here changes no more."""
        other = Contents()
        other.envelope, other.length = self.envelope, length
        other.call_sites, other.entries = dict(self.call_sites), dict(self.entries)
        return other

    def add_entry(
        self,
        name: str,
        parent: str | None,
        site: int | None,
        fields: Iterable[tuple[str, int]],
        position: int,
        stays: bool = False,
    ) -> int:
        """Add an entry, or a further part of one, whose ``fields``, names and lengths of texts, begin at ``position``.

        Return where they end.
        """
        earlier = self.entries.get(name) if stays else self.entries.pop(name, None)
        places = {} if earlier is None else dict(earlier.fields)
        for field, length in fields:
            places[field] = (position, length)
            position += length
        if earlier is not None:
            parent, site = earlier.parent or parent, site if earlier.call_site is None else earlier.call_site
        self.entries[name] = IndexedEntry(places, parent, site)
        if not (stays and earlier is not None):
            self._move_enclosing(name, parent)
        return position

    def _move_enclosing(self, name: str, parent: str | None) -> None:
        # A module's own gradients may be complete before those of a call in it; it stands after the call all the same.
        entries, moved = self.entries, {name}
        while parent is not None and parent not in moved and (enclosing := entries.pop(parent, None)) is not None:
            entries[parent] = enclosing
            moved.add(parent)
            parent = enclosing.parent


class Kept(NamedTuple):
    """An index that was kept while a journal was written, and the CRC-32 of all that it is of."""

    contents: Contents
    checksum: int

    def is_of(self, journal: BinaryIO) -> bool:
        """Whether an open journal is, byte for byte, what was written."""
        journal.seek(0)
        length = checksum = 0
        while part := journal.read(_PART):
            length, checksum = length + len(part), isal_zlib.crc32(part, checksum)
        return (length, checksum) == (self.contents.length, self.checksum)


#: Bytes of a journal that are read at once.
_PART = 1 << 20


def read_contents(journal: BinaryIO, path: Path) -> Contents:
    """Read the index of an open journal; errors name ``path``. Raises DumpFormatError for what is none of a dump."""
    contents = Contents()
    for record in read_records(journal, path):
        contents.length = record.offset + len(record.payload)
        try:
            _add(contents, record)
        except (ValueError, TypeError, RecursionError) as error:
            place = tr("the record at byte {offset}", offset=record.offset)
            raise DumpFormatError(
                tr(
                    "{path}: {place} is not one of a dump ({error}); nothing can be exported",
                    path=path,
                    place=place,
                    error=error,
                )
            ) from error
    return contents


def _add(contents: Contents, record: Record) -> None:
    if record.kind == ENTRY:
        _add_entry(contents, record.payload, record.offset)
    elif record.kind == CALL_SITE:
        number, frames = json.loads(record.payload)
        if type(number) is not int or type(frames) is not list:
            raise ValueError(tr("a call site is a number and a list of frames"))
        contents.call_sites[number] = frames
    elif record.kind == ENVELOPE:
        contents.envelope = Envelope(*json.loads(record.payload))


def _add_entry(contents: Contents, payload: bytes, offset: int) -> None:
    head, _, _ = payload.partition(b"\n")
    name, parent, site, lengths, stays = _loaded(head)
    if type(name) is not str or not (parent is None or type(parent) is str) or not (site is None or type(site) is int):
        raise ValueError(tr("the name of an entry or of its parent is no text, or its call site no number"))
    fields = []
    for field, length in lengths:
        if type(field) is not str or type(length) is not int or length < 0:
            raise ValueError(tr("a field of {name} has no name or no length", name=name))
        fields.append((intern(field), length))
    position = contents.add_entry(name, parent and intern(parent), site, fields, offset + len(head) + 1, stays=stays)
    if position != offset + len(payload):
        raise ValueError(tr("the fields of {name} end at byte {position}", name=name, position=position))
