"""What is trained while the disk fails: two steps, the first in two segments, and once more unrecorded."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
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
    """``maker`` is the module and the function that make the training, ``keys`` the configuration."""

    maker: str
    keys: dict[str, Any]

    def make(self) -> Training:
        module, _, function = self.maker.partition(".")
        return getattr(importlib.import_module(f"benchmarks.failing_disk.{module}"), function)()

    def write_config(self, path: Path, dump_path: Path) -> Path:
        keys = dict(self.keys)
        section = {key: keys.pop(key) for key in ("summary_mode",) if key in keys}
        path.write_text(json.dumps({"dump_path": str(dump_path), **keys, keys["task"]: section}))
        return path


_WAYS: dict[str, dict[str, Any]] = {
    "statistics": {"task": "statistics"},
    "md5": {"task": "statistics", "summary_mode": "md5"},
    "tensor": {"task": "tensor"},
    "async": {"task": "tensor", "async_dump": True},
    "structure": {"task": "structure"},
    "overflow": {"task": "overflow_check"},
}

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
    f"{maker} {level} {way}": Scenario(f"of_{maker}", {"level": level, **_WAYS[way]})
    for maker, levels in _LEVELS.items()
    for level, ways in levels.items()
    for way in ways
}
