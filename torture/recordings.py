"""The ways in which a training is recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

#: Name of a way → the keys of its ``config.json``.
TASKS: dict[str, dict[str, Any]] = {
    "statistics": {"task": "statistics"},
    "md5": {"task": "statistics", "summary_mode": "md5"},
    "tensor": {"task": "tensor"},
    "async": {"task": "tensor", "async_dump": True},
    "structure": {"task": "structure"},
    "overflow": {"task": "overflow_check", "overflow_nums": -1},
}
#: Keys that belong to the section of the task.
_SECTION = ("summary_mode", "overflow_nums")


def write_config(folder: Path, task: str, **keys: Any) -> Path:
    """Write a ``config.json`` into ``folder`` that records into its ``dump/``, and return its path.

    ``task`` is one of `TASKS`; ``keys`` are added to those of the task.
    """
    keys = {**TASKS[task], **keys}
    section = {key: keys.pop(key) for key in _SECTION if key in keys}
    path = folder / "config.json"
    content = {"dump_path": str(folder / "dump"), **keys, keys["task"]: section}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path
