"""A folder held open: files are made in that very folder, and in no other that comes under its name.

Someone who moves a dump while it is written takes all of it along, and a dump that another process makes in its place
stays that process's own.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from errno import EBADF, EEXIST, ENOENT, ENOTEMPTY
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from weakref import WeakValueDictionary

from msprobe_ms.support.files import DEFAULT, Permissions, open_regular, regular, replacing
from msprobe_ms.support.interruptions import interrupts, suppress_own
from msprobe_ms.support.process import ClosedError, Descriptor
from msprobe_ms.support.translation import tr

_Returned = TypeVar("_Returned")

#: Folders that this process has claimed, by their device and number.
_claimed: WeakValueDictionary[tuple[int, int], Descriptor] = WeakValueDictionary()


class Folder:
    """An open folder. Names are relative to it; whatever fails raises OSError, and all of it ClosedError after `close`.

    What was begun before `close`, also by another thread, is still finished.
    """

    def __init__(self, path: Path, permissions: Permissions = DEFAULT) -> None:
        """Open a folder that is there. ``permissions`` are those of what is made in it."""
        self.permissions = permissions
        self._path = path
        self._opened: Descriptor | None = Descriptor(partial(os.open, path, os.O_RDONLY | os.O_DIRECTORY))

    @property
    def path(self) -> Path:
        """Where it is now; where it was last seen, if it is gone."""
        with suppress_own(OSError):
            self._find()
        return self._path

    def _find(self) -> Path:
        """Where it is now. Raises FileNotFoundError where it is gone."""
        if not self.is_at(self._path):
            with self._held() as number:
                moved = Path(os.readlink(f"/proc/self/fd/{number}"))
            if not self.is_at(moved):
                raise FileNotFoundError(ENOENT, os.strerror(ENOENT), str(self._path))
            self._path = moved
        return self._path

    def is_at(self, path: Path) -> bool:
        """Whether ``path`` leads to it."""
        with self._held() as number:
            try:
                return os.path.samestat(os.stat(path), os.fstat(number))
            except (FileNotFoundError, NotADirectoryError):
                return False

    @property
    def _descriptor(self) -> Descriptor:
        if (opened := self._opened) is None:
            raise ClosedError(EBADF, tr("the folder is closed"), str(self._path))
        return opened

    @contextmanager
    def _held(self) -> Iterator[int]:
        """Its number, which no other file gets before the end of the block, though `close` comes meanwhile."""
        descriptor = self._descriptor
        yield descriptor.number

    def claim(self) -> bool:
        """Have it for this process alone as long as it is open; False where another process has claimed it.

        Disks without locks, and those that have none for folders (NFS), let everyone have it.
        """
        descriptor = self._descriptor
        state = os.fstat(descriptor.number)
        place = state.st_dev, state.st_ino
        held = _claimed.get(place)
        if held is not None and held.number >= 0:  # closed in a forked child
            self._opened = held
            return True
        try:
            fcntl.flock(descriptor.number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            if interrupts(error):
                raise
            return True
        _claimed[place] = descriptor
        return True

    def replacing(self, name: str) -> AbstractContextManager[BinaryIO]:
        """Open a temporary file; on success it becomes ``name``, on any error it is removed."""
        return replacing(name, self.permissions, self._descriptor)

    @contextmanager
    def adding(self, name: str) -> Iterator[BinaryIO]:
        """Open a temporary file, as `replacing`, but a file that is there stays. Raises FileExistsError.

        Of several processes that add the same name at once, one does.
        """
        folder = self._descriptor
        temporary, twice = f".{secrets.token_hex(8)}.tmp", False
        try:
            with self.permissions.create(temporary, folder.number) as file:
                yield file
            twice = _link(temporary, name, folder.number)
            if twice:
                os.unlink(temporary, dir_fd=folder.number)
        except BaseException:
            for left in (temporary, name) if twice else (temporary,):
                with suppress_own(OSError):
                    os.unlink(left, dir_fd=folder.number)
            raise

    def call(self, function: Callable[..., _Returned], *arguments: Any) -> _Returned:
        """Call a function of its number, which no other file gets meanwhile, and of ``arguments``."""
        descriptor = self._descriptor
        return function(descriptor.number, *arguments)

    def link(self, known: str, name: str) -> None:
        """Give a file a further name. Raises OSError, where there is a file of that name too."""
        with self._held() as number:
            os.link(known, name, src_dir_fd=number, dst_dir_fd=number, follow_symlinks=False)

    def append(self, name: str) -> BinaryIO:
        """Open a file to write at its end, which is made where there is none; never a link."""
        with self._held() as number:
            return self.permissions.append(name, number)

    def open(self, name: str) -> BinaryIO:
        """Open a regular file to read."""
        with self._held() as number:
            return open_regular(name, number)

    def regular(self, name: str) -> Descriptor:
        """Open a regular file to read, as a descriptor."""
        with self._held() as number:
            return regular(name, number)

    def stat(self, name: str) -> os.stat_result:
        """The state of a file, links followed."""
        with self._held() as number:
            return os.stat(name, dir_fd=number)

    def make_folder(self, name: str) -> None:
        """Make a folder in it where there is none."""
        with self._held() as number:
            self.permissions.make_one_folder(name, number)

    def unlink(self, name: str) -> None:
        """Remove a file."""
        with self._held() as number:
            os.unlink(name, dir_fd=number)

    def rename(self, path: Path) -> None:
        """Move it to ``path``, wherever it is now."""
        self._find().rename(path)
        self._path = path

    def remove(self, names: Iterable[str], inner: str) -> None:
        """Remove these files, the folder ``inner`` of files, and itself, unless it holds others."""
        for name in names:
            with suppress(FileNotFoundError):
                self.unlink(name)
        with suppress(FileNotFoundError), self._held() as number:
            with Descriptor(partial(os.open, inner, os.O_RDONLY | os.O_DIRECTORY, dir_fd=number)) as folder:
                for name in os.listdir(folder.number):
                    os.unlink(name, dir_fd=folder.number)
            os.rmdir(inner, dir_fd=number)
        try:
            self._find().rmdir()
        except OSError as error:
            if error.errno not in (EEXIST, ENOENT, ENOTEMPTY):
                raise
        self.close()

    def close(self) -> None:
        """Have nothing more made in it."""
        self._opened = None


def _link(temporary: str, name: str, folder: int) -> bool:
    """Give a file the further name ``name``; False where the disk has no such thing, and it has that name alone."""
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        return True
    except FileExistsError:
        raise
    except OSError as error:  # disks without hard links say so in many ways; one that is broken will say it again
        if interrupts(error):
            raise
    with suppress(FileNotFoundError):
        os.stat(name, dir_fd=folder, follow_symlinks=False)
        raise FileExistsError(EEXIST, os.strerror(EEXIST), name)
    os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    return False
