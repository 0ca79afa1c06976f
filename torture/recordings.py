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
#: The same for ways in which calls of APIs are made again.
CHECKS: dict[str, dict[str, Any]] = {
    f"{mode}{'_backward' * (stage == 'backward')}": {"task": "free_benchmark", "pert_mode": mode, "fuzz_stage": stage}
    for mode in ("add_noise", "bit_noise", "no_change", "exchange_value", "improve_precision", "to_cpu")
    for stage in ("forward", "backward")
} | {"all_noise": {"task": "free_benchmark", "pert_mode": "add_noise", "fuzz_args": "all"}}
#: Keys that belong to the section of the task.
_SECTION = ("summary_mode", "overflow_nums", "pert_mode", "fuzz_stage", "fuzz_args")


def write_config(folder: Path, task: str, **keys: Any) -> Path:
    """Write a ``config.json`` into ``folder`` that records into its ``dump/``, and return its path.

    ``task`` is one of `TASKS` or `CHECKS`; ``keys`` are added to those of the task.
    """
    keys = {**TASKS, **CHECKS}[task] | keys
    section = {key: keys.pop(key) for key in _SECTION if key in keys}
    path = folder / "config.json"
    content = {"dump_path": str(folder / "dump"), **keys, keys["task"]: section}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path
