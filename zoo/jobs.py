"""What is recorded of a pair, and where it lies: one training of two steps of one side."""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

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


@dataclass(frozen=True)
class Trained:
    """A step of a side trained without the tool: its loss, and by path the gradients and what the update made."""

    loss: float
    gradients: dict[str, np.ndarray]
    parameters: dict[str, np.ndarray]


def weights_file(root: Path, pair: str) -> Path:
    """Where the golden side keeps its first weights for the target."""
    return root / pair / "weights.npz"


def facts(root: Path, pair: str) -> dict[str, Any]:
    """What `zoo.agree` wrote of the pair: its faults, None as long as none were drawn, and the names of parameters."""
    return json.loads((root / pair / "faults.json").read_text(encoding="utf-8"))


def steps_of(job: Job, root: Path) -> int:
    """How many steps show what came of a fault: the first alone where it has to show there."""
    shown = (each["first_step"] for each in facts(root, job.pair)["faults"] or () if each["fault"] == job.fault)
    return 1 if next(shown, False) else STEPS
