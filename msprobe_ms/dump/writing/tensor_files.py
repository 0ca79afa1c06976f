"""Tensor files of one step: a tensor whose bytes a file holds already becomes a further name of that file.

What one call gives out the next takes in, and parameters are there in forward and in updates: two of three files of a
step are such. To compare with a file takes a third of the time of writing one, and no room on the disk.
"""

from __future__ import annotations

import os
from collections.abc import Hashable
from dataclasses import dataclass
from errno import EEXIST, EMLINK, ENOENT
from typing import Any, BinaryIO

from msprobe_ms.arrays.bytes_writer import BytesWriter
from msprobe_ms.dump.writing.memory_budget import Write
from msprobe_ms.support.files import Permissions, temporary_beside
from msprobe_ms.support.folder import Folder
from msprobe_ms.support.interruptions import interrupts

_is_built = True
try:
    from msprobe_ms.dump.writing._whole_files import holds as _holds
    from msprobe_ms.dump.writing._whole_files import replace as _replace
except ImportError:  # it was installed without a compiler
    _is_built = False

#: Files that are kept in mind at most, some hundred bytes each; those of the present part of a step count.
_MOST = 1 << 14
#: Bytes compared at a time.
_PIECE = 1 << 17
#: Reasons not to link that are this file's own; any other holds for the whole disk.
_OF_ONE_FILE = (EEXIST, EMLINK, ENOENT)


@dataclass(frozen=True, slots=True)
class MarkedWrite:
    """A `Write` of a tensor that may be there already: equal ones have equal ``marks``, others as a rule have not."""

    write: Write
    marks: Hashable

    def __call__(self, file: BinaryIO) -> None:
        self.write(file)


@dataclass(frozen=True, slots=True)
class MarkedBytes:
    """A `MarkedWrite` of ``data``, elements that lie at ``address`` until the file is written."""

    writer: BytesWriter
    address: int
    data: memoryview
    marks: Hashable

    def __call__(self, file: BinaryIO) -> None:
        self.writer(file, self.data)

    def are_in(self, folder: int, name: str) -> bool:
        """Whether a file holds them; what stands around them is equal where they and the marks are."""
        writer = self.writer
        return _holds(folder, os.fsencode(name), writer.before, self.address, self.data.nbytes, writer.after)

    def replace(self, folder: int, name: str, permissions: Permissions) -> None:
        """Write a file: whole or absent. Raises OSError."""
        head, tail = self.writer.around(self.data)
        names = os.fsencode(temporary_beside(name)), os.fsencode(name)
        _replace(folder, *names, permissions.file, permissions.exact, head, self.address, self.data.nbytes, tail)


class TensorFiles:
    """Writes files into a folder, each of them whole or absent."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._known: dict[Hashable, str] = {}
        self._can_link = True
        #: What files are read into to be compared, and what nobody uses now: new memory takes longer than reading.
        self._rooms: list[bytearray] = []

    def write(self, name: str, write: Write) -> None:
        """Write a file, or link it to one with the same bytes. Raises OSError when the disk refuses."""
        if not isinstance(write, (MarkedWrite, MarkedBytes)):
            return self._put(name, write)
        known = self._known.get(write.marks)
        if known is not None and self._can_link and self._holds(known, write) and self._link(known, name):
            return
        self._put(name, write)
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[write.marks] = name

    def _put(self, name: str, write: Write) -> None:
        if _is_built and isinstance(write, MarkedBytes):
            return self._folder.call(write.replace, name, self._folder.permissions)
        with self._folder.replacing(name) as file:
            write(file)

    def _holds(self, name: str, write: Write) -> bool:
        """Whether a file holds the bytes that would be written."""
        if _is_built and isinstance(write, MarkedBytes):
            return self._folder.call(write.are_in, name)
        try:  # one of its own: what a signal brings between reading and comparing may compare other files
            room = self._rooms.pop()
        except IndexError:
            room = bytearray(_PIECE)
        try:
            with self._folder.regular(name) as opened:
                found: Any = _Compared(opened.number, room)
                write(found)
                return bool(found.is_all())
        except OSError as error:
            if interrupts(error):
                raise
            return False
        finally:
            self._rooms.append(room)

    def _link(self, known: str, name: str) -> bool:
        try:
            self._folder.link(known, name)
        except OSError as error:
            if interrupts(error):
                raise
            self._can_link = error.errno in _OF_ONE_FILE
            return False
        return True


class _Compared:
    """Takes what is written and compares it with what a file holds; a difference ends nothing, as writers expect."""

    def __init__(self, number: int, room: bytearray) -> None:
        """``number`` is the file's descriptor, ``room`` what it is read into piece by piece."""
        self._number = number
        self._room = room
        self._place = 0
        self._equal = True

    def write(self, data: Any) -> int:
        view, room = memoryview(data).cast("B"), self._room
        for start in range(0, view.nbytes, len(room)):
            if not self._equal:
                break
            piece = view[start : start + len(room)]
            length = len(piece)
            into = room if length == len(room) else memoryview(room)[:length]
            read = os.preadv(self._number, (into,), self._place)
            # With an array of bytes on the left: views are compared one by one.
            self._equal = read == length and (room if into is room else room[:length]) == piece
            self._place += length
        return view.nbytes

    def flush(self) -> None:
        """Nothing is held back."""

    def is_all(self) -> bool:
        """Whether what was written is equal, and all that the file holds."""
        return self._equal and os.fstat(self._number).st_size == self._place
