"""Files made, replaced and opened safely: who may read them, whole or absent, nothing that would wait for ever.

By default a new file has mode 0640 and a new folder 0750, less what the process's umask takes away: a dump holds
weights and training data, and a loose umask is no decision to show them to everybody. What a configuration names is set
exactly, as ``mkdir -m`` has it. What exists already, folders above a dump included, is never changed.

Files that others made are read only where they are regular: a pipe would wait for ever, and a device has no end.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EINVAL, EISDIR
from pathlib import Path
from typing import BinaryIO, NamedTuple


class Permissions(NamedTuple):
    """Mode bits of new files and folders; ``exact``: whatever the umask says."""

    file: int = 0o640
    folder: int = 0o750
    exact: bool = False

    @classmethod
    def of_files(cls, mode: int) -> Permissions:
        """Files of exactly this mode, folders that whoever may read these files may enter."""
        return cls(mode, mode | (mode & 0o444) >> 2, exact=True)

    @classmethod
    def like(cls, file: Path) -> Permissions:
        """Those of what is written beside ``file``, by its mode, and owned by whoever writes it. Raises OSError."""
        return cls.of_files(0o600 | file.stat().st_mode & 0o666)

    def create(self, path: Path) -> BinaryIO:
        """Open a new file for writing. Raises FileExistsError, also for a link to nothing, and OSError."""
        return self._opened(path, os.O_EXCL, "wb")

    def append(self, path: Path) -> BinaryIO:
        """Open a file to write at its end, which is made where there is none. Raises OSError, for a link too."""
        return self._opened(path, os.O_APPEND | os.O_NOFOLLOW, "ab")

    def make_folder(self, path: Path) -> None:
        """Make a folder, and those above it, where they are not there. Raises OSError."""
        try:
            self._make_one(path)
        except FileNotFoundError:
            if path.parent == path:
                raise
            self.make_folder(path.parent)
            self._make_one(path)

    def _make_one(self, path: Path) -> None:
        try:
            os.mkdir(path, self.folder)
        except FileNotFoundError:
            raise
        except OSError:  # of a folder that is there some systems say that it may not be made
            if not path.is_dir():
                raise
        else:
            if self.exact:
                with suppress(PermissionError):  # of a disk that knows no permissions
                    os.chmod(path, self.folder)

    def _opened(self, path: Path, flags: int, mode: str) -> BinaryIO:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | flags, self.file)
        try:
            if self.exact and os.fstat(number).st_size == 0:
                with suppress(PermissionError):
                    os.fchmod(number, self.file)
            return os.fdopen(number, mode)  # type: ignore[return-value]
        except BaseException:
            os.close(number)
            raise


#: Of everything that no configuration speaks of: reports, mappings, converted tensors.
DEFAULT = Permissions()


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file to read. Raises OSError, also for a folder, pipe or device; never waits."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except ValueError as error:  # NUL in a name
        raise OSError(EINVAL, str(error), str(path)) from None
    try:
        kind = os.fstat(number).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR), str(path))
        if not stat.S_ISREG(kind):
            raise OSError(EINVAL, "not a regular file", str(path))
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def leads_out(path: Path, folder: Path) -> bool:
    """True for a link in ``folder`` to somewhere else: who made a folder does not choose what else is read."""
    return path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


@contextmanager
def replacing(path: Path, permissions: Permissions = DEFAULT) -> Iterator[BinaryIO]:
    """Open a temporary file in ``path``'s folder; on success it becomes ``path``, on any error it is removed."""
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with permissions.create(temporary) as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):  # what went wrong first is what counts
            temporary.unlink(missing_ok=True)
        raise


#: The folder of ``msprobe_ms``, with a separator at its end: files below it are never a user's.
PACKAGE_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
