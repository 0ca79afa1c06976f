"""What is recorded of a pair, and where it lies: one training of two steps of one side."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from pathlib import Path

from torture.dumps import KeptDump

GOLDEN, TARGET = "golden", "target"
STEPS = 2


@dataclass(frozen=True, order=True)
class Job(KeptDump):
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


def weights_file(root: Path, pair: str) -> Path:
    """Where the golden side keeps its first weights for the target."""
    return root / pair / "weights.npz"
