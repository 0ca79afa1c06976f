"""An append-only file of records that survives the process dying between any two instructions.

A record is ``length (4 bytes, little-endian) | CRC-32 of kind and payload (4 bytes) | kind (1 byte) | payload``; the
file starts with ``MAGIC``. A record is written by one ``write`` call, so after SIGKILL it is either whole in the page
cache or a torn tail that its length and checksum give away; readers stop there. Kinds of records in a dump: the
envelope, call sites, entries whole or in parts, and notes of what was exported.

Who writes a journal holds a lock on it, which the kernel lets go when that process ends, however it ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from errno import EBADF
from functools import partial
from pathlib import Path
from sys import intern
from typing import Any, BinaryIO, NamedTuple

import orjson
from isal import isal_zlib

from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.files import open_regular
from msprobe_ms.support.folder import Folder
from msprobe_ms.support.interruptions import suppress_own
from msprobe_ms.support.process import ClosedError, Descriptor
from msprobe_ms.support.translation import tr

MAGIC = b"msprobe_ms journal 1\n"
#: File name of a step's journal, beside its dump.json.
JOURNAL_NAME = "dump.journal"

_HEAD = struct.Struct("<II")
#: Kind of the record that ends a journal all of which is exported; in it, the journal's length before it and the size
#: of dump.json.
EXPORTED, _EXPORTED = b"X", struct.Struct("<QQ")
#: The longest record that is written. To readers a larger length is damage, for which nothing is allocated.
_LONGEST = 1 << 30


class Record(NamedTuple):
    """``kind`` is one byte, ``offset`` the payload's place in the file."""

    kind: bytes
    payload: bytes
    offset: int


def _record(kind: bytes, payload: bytes) -> bytes:
    head = _HEAD.pack(len(kind) + len(payload), isal_zlib.crc32(payload, isal_zlib.crc32(kind)))
    return b"".join((head, kind, payload))


class JournalWriter:
    """Appends records; safe to call from several threads. Close it when the step is over."""

    def __init__(self, folder: Folder, kind: bytes, payload: bytes, name: str = JOURNAL_NAME) -> None:
        """Create the file with its first record in it: a journal exists whole to that point or not at all.

        Raises FileExistsError where there is one, and OSError.
        """
        self._folder, self._name = folder, name
        # A signal handler that ends the recording may run in the middle of `append`.
        self._lock = threading.RLock()
        first = MAGIC + _record(kind, payload)
        #: Bytes that readers take, and their CRC-32, unless somebody else writes into the file, cuts it, or the disk
        #: loses some.
        self.length, self._checksum = len(first), isal_zlib.crc32(first)
        #: Records that `append` told nobody of, or has not told yet: something may have interrupted it.
        self._untold = 0
        with folder.adding(name) as file:
            _lock(file.fileno())  # before anyone can see it
            file.write(first)
            file.flush()
            self._file = Descriptor(partial(os.dup, file.fileno()))
        #: Where half a record begins that could not be taken back.
        self._torn: int | None = None

    def append(self, kind: bytes, payload: bytes, note: Callable[[int], None] | None = None) -> None:
        """Write one record, then tell ``note`` where in the file its payload is, before the next is written.

        Raises OSError when the disk refuses (full, gone), ClosedError after `close`, ValueError where the record is
        longer than readers take; it is then not in the file.
        """
        if len(payload) >= _LONGEST:
            raise ValueError(
                tr(
                    "{count} bytes are more than a record of the journal holds: {longest}",
                    count=len(payload),
                    longest=_LONGEST - 1,
                )
            )
        record = _record(kind, payload)
        with self._lock:
            if (file := self._file.number) < 0:
                raise ClosedError(EBADF, tr("the journal is closed"), self._name)
            if self._torn is not None:
                self._take_back()
            self._untold += 1
            end = self._write(file, record)
            self.length += len(record)
            self._checksum = isal_zlib.crc32(record, self._checksum)
            if note is not None:
                note(end + len(record) - len(payload))
            if note is not None or kind == EXPORTED:
                self._untold -= 1

    def _write(self, file: int, record: bytes) -> int:
        """Write a record at the end of the file; where it begins."""
        end, written = os.lseek(file, 0, os.SEEK_END), 0
        try:
            while written < len(record):
                written += os.write(file, memoryview(record)[written:] if written else record)
        except OSError:
            self._torn = end
            with suppress_own(OSError):  # before the next record, then
                self._take_back()
            self._untold -= 1
            raise
        return end

    def kept(self, contents: Contents) -> Kept | None:
        """Return what was noted in ``contents`` of every record so far; None where something was not."""
        with self._lock:
            return None if self._untold else Kept(contents.copy(self.length), self._checksum)

    def _take_back(self) -> None:
        """Half a record would hide every later one from readers."""
        if self._torn is not None:
            os.ftruncate(self._file.number, self._torn)
            self._torn = None

    def is_in_place(self) -> bool:
        """Whether it still has its name in its folder: a user may remove a dump while it is written.

        Raises OSError where that cannot be told.
        """
        try:
            return os.path.samestat(os.fstat(self._file.number), self._folder.stat(self._name))
        except FileNotFoundError:
            return False

    def note_export(self, length: int, size: int) -> None:
        """Say that ``length`` bytes of the journal are in the dump.json, of ``size`` bytes, that is beside it now.

        Where the disk refuses, readers hold that for incomplete, until the journal is removed.
        """
        with suppress_own(OSError):
            self.append(EXPORTED, _EXPORTED.pack(length, size))

    def leave_unfinished(self) -> None:
        """Have readers know that there is more than was exported, also on a full disk. Raises OSError."""
        with self._lock:
            file = self._file.number
            os.ftruncate(file, os.fstat(file).st_size + 1)

    def close(self) -> None:
        with self._lock:
            self._file.close()


def _lock(file: int) -> None:
    with suppress_own(OSError):  # of a disk without locks; what is there is as safe as without them
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_being_written(path: Path) -> bool | None:
    """Whether a process is writing the journal at ``path`` at this moment; None where that cannot be told."""
    try:
        with open_regular(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except BlockingIOError:
        return True
    except OSError:
        return None


def is_exported(path: Path, size: int) -> bool:
    """Whether the dump.json of ``size`` bytes beside the journal at ``path`` holds all of it. Raises OSError."""
    with open_regular(path) as file:
        start = os.fstat(file.fileno()).st_size - _HEAD.size - len(EXPORTED) - _EXPORTED.size
        file.seek(max(0, start))
        return start > 0 and file.read() == _record(EXPORTED, _EXPORTED.pack(start, size))


def read_journal(path: Path) -> Iterator[Record]:
    """Yield the whole records of a journal, stopping silently at a torn tail.

    Raises DumpFormatError when the file is not a journal at all.
    """
    with open_regular(path) as file:
        yield from read_records(file, path)


def read_records(file: BinaryIO, path: Path) -> Iterator[Record]:
    """Yield the whole records of a journal that is open, as `read_journal` does; errors name ``path``."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if file.read(len(MAGIC)) != MAGIC:
        raise DumpFormatError(
            tr("{path}: not a journal of msprobe_ms (it does not start with {magic})", path=path, magic=repr(MAGIC))
        )
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        length, expected = _HEAD.unpack(head)
        offset = file.tell() + 1
        if not 1 <= length <= min(_LONGEST, size - offset + 1):  # reading takes memory for all that is asked for
            return
        body = file.read(length)
        if len(body) < length or isal_zlib.crc32(body) != expected:
            return
        yield Record(body[:1], body[1:], offset)


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
        *,
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
