"""A way to a folder in the letters that MindSpore accepts in the path of a dump."""

from __future__ import annotations

import atexit
import os
import re
import tempfile
from pathlib import Path

#: What MindSpore accepts: letters, digits, and these.
_PLAIN = re.compile(r"[A-Za-z0-9_/-]+")


def plain_path(folder: Path) -> Path:
    """``folder`` itself, or a link to it of plain letters, which goes when the process ends.

    Raises OSError when no link can be made.
    """
    if _PLAIN.fullmatch(str(folder)):
        return folder
    beside = Path(tempfile.mkdtemp(prefix="msprobe_"))
    link = beside / "dump"
    try:
        link.symlink_to(folder, target_is_directory=True)
    except OSError:
        beside.rmdir()
        raise
    atexit.register(_remove, link, os.getpid())
    return link


def _remove(link: Path, process: int) -> None:
    # A forked child leaves what its parent uses.
    if os.getpid() == process and link.is_symlink():
        link.unlink()
        link.parent.rmdir()
