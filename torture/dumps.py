"""Dumps that a tool keeps: each has a folder, which is there only when the dump is whole."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class KeptDump(ABC):
    """What is dumped, and where it lies below a tool's ``root``."""

    @abstractmethod
    def folder(self, root: Path) -> Path:
        """The dump's own folder."""

    def step(self, root: Path, number: int = 0) -> Path:
        """What compare is given."""
        return self.folder(root) / f"step{number}"

    def is_done(self, root: Path) -> bool:
        return self.folder(root).exists()

    @contextmanager
    def dump_path(self, root: Path) -> Iterator[Path]:
        """Where to dump; it gets its name only when the dump is whole."""
        folder = self.folder(root)
        unfinished = folder.with_name(folder.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        yield unfinished
        unfinished.rename(folder)
