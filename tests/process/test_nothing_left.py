"""After a recording has ended, in whichever way, nothing in a framework or in user code differs from before.

A script of its own walks every attribute before the tool is imported, and again after each end: `walked_training.py`.
The plain way is walked at every level, the others at the fullest; `make interrupts` walks them at every one.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from forked import run_forked
from repository import PYTHONPATH

WAYS = ("plain", "segments", "forward", "exception", "record", "custom", "finish")

LEVELS = {"mindspore": ("L0", "L1", "mix", "L2"), "pytorch": ("L0", "L1", "mix")}

#: Where every way is walked, as in the script.
FULL = {name: levels if "MSPROBE_EVERY_WAY" in os.environ else ("mix",) for name, levels in LEVELS.items()}

TASKS = ("statistics", "tensor")

#: In the plain way, with both tasks where every way is walked; otherwise a level has one of the tasks, in turns.
RECORDINGS = [
    (name, f"{level} {task}")
    for name, levels in LEVELS.items()
    for row, level in enumerate(levels)
    for task in (TASKS if level in FULL[name] else TASKS[row % 2 :][:1])
]

#: A few of the places that must differ while a step is recorded, or the walk sees nothing.
SEEN = {
    "mindspore": {
        "L0": {"model0.head._lazy_forward_hook", "mindspore.graph.api._JitExecutor.__call__"},
        "L1": {
            "mindspore.ops.relu", "mindspore.common.tensor.Tensor.__add__",
            "mindspore.ops.primitive.Primitive.__call__",
            "users_code.relu", "users_code.TABLE.relu", "users_code.ROWS.1",
            "users_code.Holder.act", "users_code.Holder.bound", "users_code.Holder.method.0",
            "users_code.act.0", "users_code.act.other", "model0..held",
        },
    },
    "pytorch": {
        "L0": {"model0.fc1._forward_hooks", "model0.fc1._forward_pre_hooks"},
        "L1": {"torch.relu", "torch._tensor.Tensor.__add__", "torch.nn.functional.softmax"},
    },
}  # fmt: skip


@cache
def walked(framework: str) -> dict[str, list[str]]:
    with TemporaryDirectory() as folder:
        finished = run_forked(
            Path(__file__).with_name("walked_training.py"), framework, folder, cwd=folder, alone=True,
            framework=framework.removeprefix("py"), env={**os.environ, "PYTHONPATH": PYTHONPATH},
        )  # fmt: skip
    assert finished.returncode == 0, finished.stderr[-3000:]
    return json.loads(finished.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("framework", "way", "level"),
    [
        (name, way, level)
        for name, levels in LEVELS.items()
        for way in WAYS
        for level in (levels if way == "plain" else FULL[name])
    ],
)
def test_everything_is_as_before(framework: str, way: str, level: str) -> None:
    found = {name: places for name, places in walked(framework).items() if name.startswith(f"{way} {level} ")}
    while_recording = [name for name in found if name.endswith("RECORDING")]
    recordings = {" ".join(name.split()[:3]) for name in found}
    assert len(recordings) == (2 if way == "plain" and level in FULL[framework] else 1)
    for recording in recordings:
        assert sum(name.startswith(f"{recording} ") and name not in while_recording for name in found) >= 2
    assert {name: places for name, places in found.items() if places and name not in while_recording} == {}


@pytest.mark.parametrize("level", FULL["mindspore"])
def test_everything_is_as_before_with_model(level: str) -> None:
    found = {name: places for name, places in walked("mindspore").items() if name.startswith(f"Model {level} ")}
    assert {name.split(maxsplit=3)[3] for name in found} == {"left", "left by an exception", "calls"}
    assert not any(found.values()), found


@pytest.mark.parametrize("framework", LEVELS)
def test_every_way_is_recorded_and_both_tasks_at_every_level(framework: str) -> None:
    recorded = {tuple(name.split()[:3]) for name in walked(framework) if len(name.split()) > 3}
    assert {way for way, _, _ in recorded} >= set(WAYS)
    assert {(level, task) for way, level, task in recorded if way != "plain"} == {
        (level, task) for level in FULL[framework] for task in TASKS
    }


@pytest.mark.parametrize("framework", ["mindspore", "pytorch"])
def test_importing_changes_nothing(framework: str) -> None:
    assert walked(framework)["nothing"] == []
    assert walked(framework)["import"] == []


@pytest.mark.parametrize(
    ("framework", "recording"), [(framework, recording) for framework, recording in RECORDINGS if recording[:2] != "L2"]
)
def test_the_walk_sees_what_recording_changes(framework: str, recording: str) -> None:
    level = recording.split()[0]
    changed = walked(framework)[f"plain {recording} RECORDING"]
    expected = {place for at in ("L0", "L1") if level in (at, "mix") for place in SEEN[framework][at]}
    seen = {place for place in expected if any(each == place or each.startswith(f"{place}.") for each in changed)}
    assert seen == expected
