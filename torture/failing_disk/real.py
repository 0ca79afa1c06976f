"""Disks that fail in earnest: a file system in memory that is full, folders that are closed or gone mid-run.

They need a mount namespace of their own, and a process that file modes bind: see `wrapped`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

from msprobe_ms.dump.writing.journal import JOURNAL_NAME
from torture.failing_disk.disk import Disk

PAGE = 4096

#: A mount namespace, without the right to pass over the modes of files; for who is root, and for others.
_WRAPPERS = (
    ("unshare", "-m", "setpriv", "--bounding-set=-dac_override,-dac_read_search"),
    ("unshare", "-rm", "setpriv", "--bounding-set=-dac_override,-dac_read_search"),
)
_PROBE = (
    "set -e; d=$(mktemp -d); mount -t tmpfs -o size=4k tmpfs $d; umount $d; chmod 555 $d; "
    "if touch $d/file 2>/dev/null; then exit 1; fi; rmdir $d"
)


def wrapper() -> Sequence[str] | None:
    """What to put before a command that fails disks; None where the system does not allow it."""
    for words in _WRAPPERS:
        try:
            if subprocess.run([*words, "sh", "-c", _PROBE], capture_output=True, timeout=60).returncode == 0:
                return words
        except (OSError, subprocess.TimeoutExpired):
            continue
    return None


class _Real(Disk):
    """What disks that fail in earnest have in common."""

    _moments = 0

    @property
    def first(self) -> str:
        return type(self).__name__

    def __str__(self) -> str:
        return f"{type(self).__name__}, {self.at}"

    def moment(self) -> None:
        self._moments += 1
        if self._moments == self.at:
            self.happen()

    def happen(self) -> None:
        """What goes wrong at moment ``at``."""


class FullDisk(_Real):
    """The dump path is a file system of ``at`` bytes."""

    def __enter__(self) -> Any:
        self.folder.mkdir(exist_ok=True)
        options = f"size={self.at}"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.folder)], check=True)
        return self

    def clean(self) -> None:
        subprocess.run(["umount", str(self.folder)], check=True)


class ClosedFolders(_Real):
    """All folders and files of the dump become read-only, as do those above them."""

    leaves_temporary_files = True

    def happen(self) -> None:
        self._change(0o555)

    def __exit__(self, *_: object) -> None:
        self._change(0o755)

    def _change(self, mode: int) -> None:
        for place, _, names in [*os.walk(self.folder)]:
            for name in names:
                os.chmod(os.path.join(place, name), mode)
            os.chmod(place, mode)


class RemovedFolder(_Real):
    """The dumps that are being written are removed."""

    def happen(self) -> None:
        for journal in [*self.folder.rglob(JOURNAL_NAME)]:
            shutil.rmtree(journal.parent)
