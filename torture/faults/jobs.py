"""What is dumped, and where it lies: a job is a training of one net, of one step or more."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from pathlib import Path

from torture.dumps import KeptDump

MINDSPORE, PYTORCH = "mindspore", "pytorch"

#: Changes that change no value: a second run, and a compiled net in PyNative.
AGAIN, DYNAMIC = "again", "dynamic"


@dataclass(frozen=True)
class Job(KeptDump):
    """``change`` is the fault planted, or in PyTorch the variant of the net; "" for the net as it is.

    ``AGAIN`` and ``DYNAMIC`` are changes too.
    """

    framework: str
    net: str
    change: str = ""
    seed: int = 0
    level: str = "L0"
    task: str = "tensor"
    steps: int = 1

    def __str__(self) -> str:
        """
        >>> str(Job("mindspore", "mlp", "eps")), Job.parse("mindspore:mlp:eps:0:L0:tensor").change
        ('mindspore:mlp:eps:0:L0:tensor:1', 'eps')
        """
        return ":".join(map(str, astuple(self)))

    @classmethod
    def parse(cls, text: str) -> Job:
        framework, net, change, seed, level, task, steps = text.split(":")
        return cls(framework, net, change, int(seed), level, task, int(steps))

    def folder(self, root: Path) -> Path:
        name = f"{self.net}-{self.change or 'healthy'}-seed{self.seed}-{self.level}-{self.task}"
        return root / self.framework / name
