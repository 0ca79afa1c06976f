"""Which trainings run, and how each of them ends."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

#: How a training may end, and what its exit status is then; None: that of the same training without recording.
WAYS: dict[str, int | None] = {
    "kill": -9,  # SIGKILL at any time
    "kill at file": -9,  # SIGKILL before the tool's n-th operation on a file
    "term": -15,  # SIGTERM at any time, nobody handles it
    "term handled": 143,  # SIGTERM on any line of the tool: the script's own handler calls sys.exit
    "term closing": 143,  # and before that ends the recording
    "interrupt": -2,  # Ctrl-C on any line of the tool
    "exception": None,  # raised by user code: in a module, in a hook of backward, between steps
    "exit": None,  # sys.exit there
    "memory": None,  # no more address space from there on
}
#: What the runner sends, at a time of its own.
SIGNALLED = ("kill", "term")
#: Ways that come on a line of the tool, which the training then counts.
ON_A_LINE = ("term handled", "term closing", "interrupt")
#: Ways after which Python does not run on.
ABRUPT = ("kill", "kill at file", "term")
#: No way: what the others are measured against.
WHOLE = "whole"

_TASKS = ("statistics", "md5", "tensor", "async", "structure")
_CALLS = (*_TASKS, "overflow")
_SAVED = ("statistics", "tensor")
#: Framework and mode → level → tasks.
_TABLE: dict[tuple[str, str], dict[str, Sequence[str]]] = {
    ("mindspore", "dynamic"): {"L0": _CALLS, "L1": _CALLS, "mix": _CALLS, "L2": _CALLS, "debug": _SAVED},
    ("mindspore", "jit"): {"L0": _TASKS, "L1": ("statistics", "tensor"), "mix": _TASKS},
    ("mindspore", "graph"): {"L0": _TASKS, "L2": ("statistics", "tensor"), "debug": ("statistics",)},
    ("pytorch", "dynamic"): {"L0": _CALLS, "L1": _CALLS, "mix": _CALLS, "debug": _SAVED},
}
#: Steps of a training that nobody ends.
STEPS = 3


@dataclass(frozen=True)
class Setting:
    """What is recorded of which training.

    ``mode``: ``dynamic``, ``jit`` (one module of it compiled) or ``graph``; ``task``: of `recordings.TASKS`.
    """

    framework: str
    mode: str
    level: str
    task: str
    recorded: bool = True

    def __str__(self) -> str:
        return f"{self.framework} {self.mode} {self.level} {self.task}"


@dataclass(frozen=True)
class Plan:
    """``at``: after how much told, or before which operation on a file, it ends; ``seconds`` or ``lines`` later."""

    setting: Setting
    way: str = WHOLE
    at: int = 0
    seconds: float = 0.0
    lines: int = 0

    def __str__(self) -> str:
        later = f" + {self.seconds:.4f} s" * (self.seconds > 0) + f" + {self.lines} lines" * (self.lines > 0)
        return f"{self.setting}: {self.way} at {self.at}{later}"

    @property
    def bare(self) -> Plan:
        """The same without recording."""
        return replace(self, setting=replace(self.setting, recorded=False))

    def to_json(self, folder: Path) -> str:
        return json.dumps({**asdict(self), "folder": str(folder)})

    @staticmethod
    def from_json(text: str) -> tuple[Plan, Path]:
        content = json.loads(text)
        folder = Path(content.pop("folder"))
        return Plan(**{**content, "setting": Setting(**content["setting"])}), folder


def settings() -> list[Setting]:
    return [
        Setting(framework, mode, level, task)
        for (framework, mode), levels in _TABLE.items()
        for level, tasks in levels.items()
        for task in tasks
    ]


def ends(count: int, chance: random.Random) -> Iterator[tuple[Setting, str]]:
    """``count`` trainings and the ways they end; every pair comes before any comes twice."""
    while count > 0:
        pairs = [(setting, way) for setting in settings() for way in WAYS]
        chance.shuffle(pairs)
        yield from pairs[:count]
        count -= len(pairs)
