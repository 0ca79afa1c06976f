"""Who may read what this package writes, from the moment a file or folder is made.

By default 0640 for files and 0750 for folders, less what the process's umask takes away: a dump holds weights and
training data, and a loose umask is no decision to show them to everybody. What a configuration names is set exactly,
as ``mkdir -m`` has it. What exists already, folders above a dump included, is never changed.
"""

from __future__ import annotations

import os
from contextlib import suppress
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
