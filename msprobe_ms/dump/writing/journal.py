"""An append-only file of records that survives the process dying between any two instructions.

A record is ``length (4 bytes, little-endian) | CRC-32 of kind and payload (4 bytes) | kind (1 byte) | payload``; the
file starts with ``MAGIC``. A record is written by one ``write`` call, so after SIGKILL it is either whole in the page
cache or a torn tail that its length and checksum give away; readers stop there.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from isal import isal_zlib

from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.files import DEFAULT, Permissions, open_regular, replacing

MAGIC = b"msprobe_ms journal 1\n"
#: File name of a step's journal, beside its dump.json.
JOURNAL_NAME = "dump.journal"

_HEAD = struct.Struct("<II")
#: No record comes near this; a larger length is damage, not data, and nothing is allocated for it.
_LONGEST = 1 << 30


class Record(NamedTuple):
    """``kind`` is one byte, ``offset`` the payload's place in the file."""

    kind: bytes
    payload: bytes
    offset: int


def _record(kind: bytes, payload: bytes) -> bytes:
    body = kind + payload
    return _HEAD.pack(len(body), isal_zlib.crc32(body)) + body


class JournalWriter:
    """Appends records; safe to call from several threads. Close it when the step is over."""

    def __init__(self, path: Path, kind: bytes, payload: bytes, permissions: Permissions = DEFAULT) -> None:
        """Create the file with its first record in it: a journal exists whole to that point or not at all."""
        self.path = path
        # A signal handler that ends the recording may run in the middle of `append`.
        self._lock = threading.RLock()
        with replacing(path, permissions) as file:
            file.write(MAGIC + _record(kind, payload))
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND)
        #: Where half a record begins that could not be taken back.
        self._torn: int | None = None

    def append(self, kind: bytes, payload: bytes) -> None:
        """Write one record. Raises OSError when the disk refuses (full, gone): the record is then not in the file."""
        record, written = _record(kind, payload), 0
        with self._lock:
            self._take_back()
            end = os.lseek(self._file, 0, os.SEEK_END)
            try:
                while written < len(record):
                    written += os.write(self._file, memoryview(record)[written:] if written else record)
            except OSError:
                self._torn = end
                with suppress(OSError):  # before the next record, then
                    self._take_back()
                raise

    def _take_back(self) -> None:
        """Half a record would hide every later one from readers."""
        if self._torn is not None:
            os.ftruncate(self._file, self._torn)
            self._torn = None

    def is_in_place(self) -> bool:
        """Whether the path still leads to this journal: a user may move or remove a dump while it is written.

        Raises OSError where that cannot be told.
        """
        try:
            return os.path.samestat(os.fstat(self._file), os.stat(self.path))
        except (FileNotFoundError, NotADirectoryError):
            return False

    def outdate(self) -> None:
        """Make the journal younger than any file exported from it: there is more to export. Raises OSError."""
        now = time.time_ns()
        os.utime(self._file, ns=(now, now))

    def close(self) -> None:
        with self._lock:
            file, self._file = self._file, -1
            if file >= 0:
                os.close(file)


def read_journal(path: Path) -> Iterator[Record]:
    """Yield the whole records of a journal, stopping silently at a torn tail.

    Raises DumpFormatError when the file is not a journal at all.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if file.read(len(MAGIC)) != MAGIC:
            raise DumpFormatError(f"{path}: not a journal of msprobe_ms (it does not start with {MAGIC!r})")
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            length, expected = _HEAD.unpack(head)
            offset = file.tell() + 1
            if not 1 <= length <= min(_LONGEST, size - offset + 1):  # reading takes memory for all that is asked for
                return
            body = file.read(length)
            if len(body) < length or isal_zlib.crc32(body) != expected:
                return
            yield Record(body[:1], body[1:], offset)
