"""Find folders of raw kernel files below a dump root, each of one rank, graph and iteration.

Their layout: docs/format.md, "Kernel files".
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from msprobe_ms.dump.kernels.kernel_files import MAPPING, STATISTIC, KernelFile, parse_file_name, read_kernel_files
from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.files import leads_out
from msprobe_ms.support.log import logger

_ACCEPTED = (
    "accepted is a folder with kernel files as MindSpore dumps them: rank_R/Net/{graph}/{iteration}, or of GE "
    "{time}/{device}/{net}/{graph}/{iteration}"
)


class KernelFolder(NamedTuple):
    """A folder of raw files. ``step`` is the iteration as the framework counts it."""

    path: Path
    rank: int
    step: int

    @property
    def root(self) -> Path:
        """The folder that the rank's own stands in."""
        return self.path.parents[3]

    def files(self) -> list[KernelFile]:
        """Read its tensors in launch order. Raises DumpFormatError: it, or a table in it, cannot be read."""
        return read_folders([self])


def read_folders(folders: Collection[KernelFolder]) -> list[KernelFile]:
    """Read the tensors of several graphs and iterations in launch order. Raises DumpFormatError."""
    paths: list[Path] = []
    for folder in folders:
        try:
            inside = sorted(folder.path.iterdir())
        except OSError as error:
            raise DumpFormatError(f"{folder.path}: cannot be read: {error.strerror or error}") from error
        outside = {path for path in inside if leads_out(path, folder.root)}
        if outside:
            logger.warning(
                "%s: %d links that leave the dump, first %s; they are left out",
                folder.path,
                len(outside),
                min(outside).name,
            )
        paths += [path for path in inside if path not in outside]
    return read_kernel_files(paths)


def find_kernel_folders(root: Path) -> list[KernelFolder]:
    """Find the folders in and below ``root``, by rank, step and graph; links to folders are not followed.

    :raises DumpFormatError: ``root`` is no folder
    """
    if not root.is_dir():
        raise DumpFormatError(f"{root}: no such folder; {_ACCEPTED}")
    found = []
    for path, folders, names in os.walk(root.absolute()):
        folders[:] = [name for name in folders if not name.startswith((".", "earlier"))]
        place = _place(Path(path))
        if place is not None and not folders and any(_is_kernel_file(name) for name in names):
            found.append(KernelFolder(Path(path), *place))
    return sorted(found, key=lambda folder: (folder.rank, folder.step, folder.path))


def need_kernel_folders(root: Path) -> list[KernelFolder]:
    """Find folders as ``find_kernel_folders``; none is an error too."""
    found = find_kernel_folders(root)
    if not found:
        raise DumpFormatError(f"{root}: no kernel files in it; {_ACCEPTED}")
    return found


def _place(path: Path) -> tuple[int, int] | None:
    """Rank and step of ``…/{rank}/{net}/{graph}/{iteration}``, or of a folder less; None for any other."""
    if len(path.parts) < 5:
        return None
    step = _number(path.parts[-1])
    ranks = (_number(path.parts[place].rpartition("_")[2]) for place in (-4, -3))
    rank = next((rank for rank in ranks if rank is not None), None)
    return None if rank is None or step is None else (rank, step)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _is_kernel_file(name: str) -> bool:
    return name in (MAPPING, STATISTIC) or parse_file_name(Path(name)) is not None
