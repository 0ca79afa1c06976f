"""Opening files that others made: regular files only, as a pipe would wait for ever and a device has no end."""

from __future__ import annotations

import os
import stat
from errno import EINVAL, EISDIR
from pathlib import Path
from typing import BinaryIO


def open_regular(path: Path) -> BinaryIO:
    """Open to read. Raises OSError, also for what is no regular file; nothing waits."""
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
    """Whether ``path``, found in ``folder``, is a link to somewhere else: who made a folder does not choose what else
    is read."""
    return path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
