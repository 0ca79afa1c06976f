"""What is recorded of a pair, and where it lies: one training of two steps of one side."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path

GOLDEN, TARGET = "golden", "target"
STEPS = 2


@dataclass(frozen=True, order=True)
class Job:
    """``fault``: what is planted in the target, as ``kind@place``; "" for none."""

    pair: str
    side: str
    fault: str = ""
    level: str = "L0"
    task: str = "tensor"

    def __str__(self) -> str:
        return "|".join(astuple(self))

    @classmethod
    def parse(cls, text: str) -> Job:
        return cls(*text.split("|"))

    def folder(self, root: Path) -> Path:
        name = f"{self.side}-{self.fault or 'healthy'}-{self.level}-{self.task}".replace("/", "_")
        return root / self.pair / name

    def step(self, root: Path, number: int) -> Path:
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


def weights_file(root: Path, pair: str) -> Path:
    """Where the golden side keeps its first weights for the target."""
    return root / pair / "weights.npz"
