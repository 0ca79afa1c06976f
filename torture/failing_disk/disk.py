"""A disk that fails: the n-th call of this process that touches files below one folder raises an error of the system.

Failing calls are those of Python (``os``, ``io``), whoever makes them, with what they do to buffered files: a write
that cannot be made shows when the buffer is flushed, or when the file is closed. Pathlib goes through ``os`` from
Python 3.11 on.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

#: Calls that take room on a disk, those that look up or change names in folders, and the rest.
_ROOM = frozenset({"create", "write", "mkdir", "rename", "symlink", "fsync", "close"})
_NAMES = frozenset({"create", "open", "mkdir", "rename", "symlink", "unlink", "rmdir", "stat", "list", "utime"})
EVERY = _ROOM | _NAMES | {"truncate", "read"}


class Fault(NamedTuple):
    """What goes wrong: an error of the system, in which calls, and whether from the n-th on or only then."""

    number: int
    calls: frozenset[str]
    stays: bool

    def __str__(self) -> str:
        return f"{errno.errorcode[self.number]} {'from there on' if self.stays else 'once'}"


#: Each alone in any call; staying, as disks do: one that is full, one that is broken, and folders that are closed.
FAULTS = (
    *(Fault(number, EVERY, stays=False) for number in (errno.ENOSPC, errno.EIO, errno.EACCES)),
    Fault(errno.ENOSPC, _ROOM, stays=True),
    Fault(errno.EIO, EVERY, stays=True),
    Fault(errno.EACCES, _NAMES, stays=True),
)


class Disk:
    """A disk that fails while it is entered, at ``at``: which call, moment or size that is, subclasses say."""

    #: Whether a single call fails.
    once = False
    #: Whether files that were begun may not be removed.
    leaves_temporary_files = False
    #: How many calls failed, where they are counted, and which was the first.
    failed = 1
    first = ""

    def __init__(self, folder: Path, at: int) -> None:
        self.folder = folder
        self.at = at

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def moment(self) -> None:
        """Hear that an iteration begins or ends."""

    def clean(self) -> None:
        """Make it possible to remove what is left."""


class FailingDisk(Disk):
    """While it is entered, calls that touch files below ``folder`` are counted and the ``at``-th fails; 0: none."""

    failed = 0

    def __init__(self, folder: Path, fault: Fault, at: int) -> None:
        super().__init__(folder.resolve(), at)
        self.fault = fault
        self.once = not fault.stays
        self.leaves_temporary_files = fault.stays and "unlink" in fault.calls
        self.calls = 0
        #: How many calls of each kind there were, whether or not they can fail.
        self.kinds: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._patches = ExitStack()

    def __enter__(self) -> Any:
        for name, kind in _BY_PATH.items():
            self._replace(os, name, self._by_path(getattr(os, name), kind))
        for name, kind in _BY_FILE.items():
            self._replace(os, name, self._by_file(getattr(os, name), kind))
        self._replace(os, "open", self._opening(os.open))
        opened = self._opened(io.open)
        self._replace(io, "open", opened)
        self._replace(builtins, "open", opened)
        return self

    def __exit__(self, *_: object) -> None:
        self._patches.close()

    def __str__(self) -> str:
        return f"{self.fault}, call {self.at}"

    def check(self, kind: str, where: object, fail: Callable[[], object] = lambda: None) -> None:
        """Count a call; raises OSError, after ``fail``, where it fails."""
        with self._lock:
            self.kinds[kind] += 1
            if kind not in self.fault.calls:
                return
            self.calls += 1
            if not self.at or self.calls < self.at or (self.calls > self.at and not self.fault.stays):
                return
            self.failed += 1
            self.first = self.first or f"{kind} {where}"
        fail()
        raise OSError(self.fault.number, os.strerror(self.fault.number), str(where))

    def _replace(self, module: Any, name: str, function: Callable[..., Any]) -> None:
        self._patches.enter_context(mock.patch.object(module, name, function))

    def _place(self, path: Any, folder: int | None = None) -> str | None:
        """Where ``path`` (a path, or an open file's number) lies below the folder; None where it does not."""
        try:
            if path is None:
                return None
            if isinstance(path, int):
                place = os.readlink(f"/proc/self/fd/{path}")
            else:
                base = "" if folder is None else os.readlink(f"/proc/self/fd/{folder}")
                place = os.path.abspath(os.path.join(base, os.fsdecode(path)))
        except (OSError, TypeError):
            return None
        return place if place == str(self.folder) or place.startswith(f"{self.folder}/") else None

    def _by_path(self, real: Callable[..., Any], kind: str) -> Callable[..., Any]:
        def call(*args: Any, **keys: Any) -> Any:
            folder = keys.get("dir_fd", keys.get("src_dir_fd"))
            place = self._place(args[-1] if kind in ("rename", "symlink") else args[0] if args else ".", folder)
            if place is not None:
                self.check(kind, place)
            return real(*args, **keys)

        return call

    def _by_file(self, real: Callable[..., Any], kind: str) -> Callable[..., Any]:
        def call(file: int, *args: Any) -> Any:
            place = self._place(file)
            if place is None:
                return real(file, *args)
            if kind == "close":  # the number is free whatever the disk says
                real(file)
            if kind == "write":  # half of it is in the file before the disk refuses
                self.check(kind, place, lambda: real(file, args[0][: len(args[0]) // 2]))
            else:
                self.check(kind, place)
            return None if kind == "close" else real(file, *args)

        return call

    def _opening(self, real: Callable[..., int]) -> Callable[..., int]:
        def call(path: Any, flags: int, *args: Any, dir_fd: int | None = None, **keys: Any) -> int:
            place = self._place(path, dir_fd)
            if place is not None:
                self.check("create" if flags & os.O_CREAT else "open", place)
            return real(path, flags, *args, dir_fd=dir_fd, **keys)

        return call

    def _opened(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(
            file: Any, mode: str = "r", buffering: int = -1, encoding: Any = None, errors: Any = None,
            newline: Any = None, closefd: bool = True, opener: Any = None,
        ) -> Any:  # fmt: skip
            place = self._place(file)
            if place is None:
                return real(file, mode, buffering, encoding, errors, newline, closefd, opener)
            self.check("create" if set(mode) & set("wxa") else "open", place)
            raw = _File(file, mode.replace("b", "").replace("t", ""), closefd, opener)
            raw.disk, raw.place, raw.writes = self, place, bool(set(mode) & set("wxa+"))
            if buffering == 0:
                return raw
            kind: Any = io.BufferedReader
            if "+" in mode:
                kind = io.BufferedRandom
            elif set(mode) & set("wxa"):
                kind = io.BufferedWriter
            return kind(raw) if "b" in mode else io.TextIOWrapper(kind(raw), encoding, errors, newline)

        return call


class _File(io.FileIO):
    """A file of the failing disk."""

    disk: FailingDisk
    place: str
    writes: bool

    def write(self, content: Any) -> int:
        write = super().write
        self.disk.check("write", self.place, lambda: write(content[: len(content) // 2]))
        return write(content)

    def readinto(self, target: Any) -> int:
        self.disk.check("read", self.place)
        return super().readinto(target)

    def readall(self) -> bytes:
        self.disk.check("read", self.place)
        return super().readall()

    def truncate(self, size: int | None = None) -> int:
        self.disk.check("truncate", self.place)
        return super().truncate(size)

    def close(self) -> None:
        was_open = not self.closed
        super().close()
        if was_open and self.writes:
            self.disk.check("close", self.place)


_BY_PATH = {
    "mkdir": "mkdir", "rmdir": "rmdir", "unlink": "unlink", "remove": "unlink", "rename": "rename",
    "replace": "rename", "symlink": "symlink", "link": "symlink", "truncate": "truncate", "stat": "stat",
    "lstat": "stat", "listdir": "list", "scandir": "list", "utime": "utime", "chmod": "utime",
}  # fmt: skip
_BY_FILE = {
    "preadv": "read",
    "write": "write",
    "ftruncate": "truncate",
    "fsync": "fsync",
    "fdatasync": "fsync",
    "close": "close",
}
