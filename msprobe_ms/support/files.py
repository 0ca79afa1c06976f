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
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

from msprobe_ms.support.interruptions import interrupts, suppress_own
from msprobe_ms.support.process import Descriptor
from msprobe_ms.support.translation import tr


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
    def like(cls, mode: int) -> Permissions:
        """Those of what is written beside a file of that mode, and owned by whoever writes it."""
        return cls.of_files(0o600 | mode & 0o666)

    def create(self, path: Path | str, folder: int | None = None) -> BinaryIO:
        """Open a new file for writing. Raises FileExistsError, also for a link to nothing, and OSError.

        Here and below, ``folder`` is the descriptor of the folder that a relative ``path`` starts from.
        """
        return self._opened(path, os.O_EXCL, "wb", folder)

    def append(self, path: Path | str, folder: int | None = None) -> BinaryIO:
        """Open a file to write at its end, which is made where there is none. Raises OSError, for a link too."""
        return self._opened(path, os.O_APPEND | os.O_NOFOLLOW, "ab", folder)

    def make_folder(self, path: Path) -> None:
        """Make a folder, and those above it, where they are not there. Raises OSError."""
        try:
            self.make_one_folder(path)
        except FileNotFoundError:
            if path.parent == path:
                raise
            self.make_folder(path.parent)
            self.make_one_folder(path)

    def make_one_folder(self, path: Path | str, folder: int | None = None) -> None:
        """Make a folder where it is not there; those above it must be. Raises OSError."""
        try:
            os.mkdir(path, self.folder, dir_fd=folder)
        except FileNotFoundError:
            raise
        except OSError as error:  # of a folder that is there some systems say that it may not be made
            if interrupts(error) or not _is_folder(path, folder):
                raise
        else:
            if self.exact:
                with suppress(PermissionError):  # of a disk that knows no permissions
                    os.chmod(path, self.folder, dir_fd=folder)

    def _opened(self, path: Path | str, flags: int, mode: str, folder: int | None) -> BinaryIO:
        opening = partial(os.open, path, os.O_WRONLY | os.O_CREAT | flags, self.file, dir_fd=folder)
        with Descriptor(opening) as opened:
            if self.exact and os.fstat(opened.number).st_size == 0:
                with suppress(PermissionError):
                    os.fchmod(opened.number, self.file)
            return opened.as_file(mode)


def _is_folder(path: Path | str, folder: int | None) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path, dir_fd=folder).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


#: Of everything that no configuration speaks of: reports, mappings, converted tensors.
DEFAULT = Permissions()


def open_regular(path: Path | str, folder: int | None = None) -> BinaryIO:
    """Open a regular file to read. Raises OSError, also for a folder, pipe or device; never waits."""
    with regular(path, folder) as opened:
        return opened.as_file("rb")


def regular(path: Path | str, folder: int | None = None) -> Descriptor:
    """The same as a descriptor."""
    try:
        opened = Descriptor(partial(os.open, path, os.O_RDONLY | os.O_NONBLOCK, dir_fd=folder))
    except ValueError as error:  # NUL in a name
        raise OSError(EINVAL, str(error), str(path)) from None
    try:
        kind = os.fstat(opened.number).st_mode
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR), str(path))
        if not stat.S_ISREG(kind):
            raise OSError(EINVAL, tr("not a regular file"), str(path))
    except BaseException:
        opened.close()
        raise
    return opened


def leads_out(path: Path, folder: Path) -> bool:
    """True for a link in ``folder`` to somewhere else: who made a folder does not choose what else is read."""
    return path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def temporary_beside(path: Path | str) -> str:
    """Return the path of a temporary file in the same folder."""
    # As text: of a thousand files in a step, paths as objects would take longer than making the files.
    return os.path.join(os.path.dirname(path), f".{secrets.token_hex(8)}.tmp")


@contextmanager
def replacing(
    path: Path | str, permissions: Permissions = DEFAULT, folder: Descriptor | None = None
) -> Iterator[BinaryIO]:
    """Open a temporary file in ``path``'s folder; on success it becomes ``path``, on any error it is removed.

    ``folder`` is what a relative ``path`` starts from; it stays open until the file is in place.
    """
    start = None if folder is None else folder.number
    temporary = temporary_beside(path)
    try:
        with permissions.create(temporary, start) as file:
            yield file
        os.replace(temporary, path, src_dir_fd=start, dst_dir_fd=start)
    except BaseException:
        with suppress_own(OSError):  # what went wrong first is what counts
            os.unlink(temporary, dir_fd=start)
        raise


#: The folder of ``msprobe_ms``, with a separator at its end: files below it are never a user's.
PACKAGE_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
