"""An append-only file of records that survives the process dying between any two instructions.

A record is ``length (4 bytes, little-endian) | CRC-32 of kind and payload (4 bytes) | kind (1 byte) | payload``; the
file starts with ``MAGIC``. A record is written by one ``write`` call, so after SIGKILL it is either whole in the page
cache or a torn tail that its length and checksum give away; readers stop there. Kinds of records in a dump: the
envelope, call sites, entries whole or in parts, and notes of what was exported.

Who writes a journal holds a lock on it, which the kernel lets go when that process ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import struct
import threading
from collections.abc import Callable, Iterator
from errno import EBADF
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

from isal import isal_zlib

from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.files import open_regular
from msprobe_ms.support.folder import Folder
from msprobe_ms.support.interruptions import suppress_own
from msprobe_ms.support.process import ClosedError, Descriptor
from msprobe_ms.support.translation import tr

_at_end: Callable[..., tuple[bytes, int, int] | None] | None
try:
    from msprobe_ms.dump.writing._records import record as _at_end
except ImportError:  # it was installed without a compiler
    _at_end = None

_Taken = TypeVar("_Taken")

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
        #: Records that `append` told nobody of, or has not told yet, and uses of what was told that have not ended:
        #: something may have interrupted them.
        self._untold = 0
        with folder.adding(name) as file:
            _lock(file.fileno())  # before anyone can see it
            file.write(first)
            file.flush()
            self._file = Descriptor(partial(os.dup, file.fileno()))
        self._number = self._file.number
        #: The same with device and inode, by which the file is known; None where the disk does not say.
        self._place = self._file.place
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
        with self._lock:
            made = None
            if (place := self._place) is not None and self._torn is None and _at_end is not None:
                made = _at_end(place, kind, payload, isal_zlib.crc32, self._checksum)
            record, end, checksum = made or self._made(kind, payload)
            self._untold += 1
            try:
                if (written := os.write(self._number, record)) < len(record):
                    self._write_rest(record, written)
            except OSError:
                self._torn = end
                with suppress_own(OSError):  # before the next record, then
                    self._take_back()
                self._untold -= 1
                raise
            self.length += len(record)
            self._checksum = checksum
            if note is not None:
                note(end + len(record) - len(payload))
            if note is not None or kind == EXPORTED:
                self._untold -= 1

    def _made(self, kind: bytes, payload: bytes) -> tuple[bytes, int, int]:
        """A record, where it begins, and the checksum of all to its end."""
        record = _record(kind, payload)
        if (file := self._file.number) < 0:
            raise ClosedError(EBADF, tr("the journal is closed"), self._name)
        if self._torn is not None:
            self._take_back()
        return record, os.lseek(file, 0, os.SEEK_END), isal_zlib.crc32(record, self._checksum)

    def _write_rest(self, record: bytes, written: int) -> None:
        while written < len(record):
            written += os.write(self._number, memoryview(record)[written:])

    def if_noted(self, take: Callable[[int, int], _Taken]) -> _Taken | None:
        """Return what ``take`` makes of length and checksum, before more is written; None if a record was not noted.

        Something may interrupt ``take``, and leave half of what it makes: then None from then on.
        """
        with self._lock:
            if self._untold:
                return None
            self._untold += 1
            taken = take(self.length, self._checksum)
            self._untold -= 1
            return taken

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
