"""What is trained while the disk fails: two steps, the first in two segments, and once more unrecorded."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

#: The loss and all gradients of one iteration.
Result = list[bytes]
#: Hands a value over at level debug; does nothing otherwise.
Save = Callable[[Any, str], None]


class Training(NamedTuple):
    """``train`` is one iteration of ``model``; ``namespaces`` are modules and classes that recording changes."""

    model: Any
    parts: Callable[[], list[Any]]
    train: Callable[[Save], Result]
    debugger: Callable[..., Any]
    namespaces: tuple[Any, ...]

    def run(self, debugger: Any, moment: Callable[[], None] = lambda: None) -> list[Result]:
        """Train, recorded by ``debugger``, which is used up; ``moment`` is called before and after each iteration."""
        try:
            results = []
            for segments in (2, 1):
                for _ in range(segments):
                    debugger.start(self.model)
                    moment()
                    results.append(self.train(debugger.save if debugger.config.level == "debug" else _nothing))
                    moment()
                    debugger.stop()
                debugger.step()
        finally:
            debugger.retire()
        return [*results, self.train(_nothing)]

    def traces(self) -> dict[str, Any]:
        """What would differ where a hook or a wrapper stayed behind."""
        found: dict[str, Any] = {}
        for number, part in enumerate(self.parts()):
            for name, value in vars(part).items():
                if "hook" in name and hasattr(value, "__len__"):
                    found[f"part {number} {name}"] = len(value)
            found[f"part {number} construct"] = part.__dict__.get("construct")
        for space in self.namespaces:
            found |= {f"{space.__name__}.{name}": id(value) for name, value in vars(space).items() if callable(value)}
        return found


def _nothing(value: Any, name: str) -> None:
    return None


class Scenario(NamedTuple):
    """``maker`` is the module and the function that make the training, ``task`` one of `recordings.TASKS`."""

    maker: str
    level: str
    task: str

    def make(self) -> Training:
        module, _, function = self.maker.partition(".")
        return getattr(importlib.import_module(f"torture.failing_disk.{module}"), function)()


_LEVELS: dict[str, dict[str, tuple[str, ...]]] = {
    "mindspore.dynamic": {
        "L0": ("statistics", "md5", "tensor", "async", "structure"),
        "L1": ("statistics", "md5", "tensor", "async"),
        "mix": ("statistics", "md5", "tensor", "async", "overflow"),
        "L2": ("statistics", "md5", "tensor", "async"),
        "debug": ("statistics", "tensor", "async"),
    },
    "mindspore.mixed": {"L0": ("statistics", "tensor"), "mix": ("statistics", "async")},
    "mindspore.compiled": {"L0": ("statistics", "md5", "tensor", "async", "structure")},
    "mindspore.compiled_kernels": {"L2": ("statistics",)},
    "pytorch.dynamic": {
        "L0": ("statistics", "md5", "tensor", "async", "structure"),
        "L1": ("statistics", "tensor"),
        "mix": ("statistics", "md5", "tensor", "async", "overflow"),
        "debug": ("statistics", "tensor"),
    },
}

#: ``mindspore.dynamic L0 tensor`` …: what is trained, level and task.
SCENARIOS: dict[str, Scenario] = {
    f"{maker} {level} {task}": Scenario(f"of_{maker}", level, task)
    for maker, levels in _LEVELS.items()
    for level, tasks in levels.items()
    for task in tasks
}
