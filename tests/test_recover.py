"""After SIGKILL at any moment the dump can be recovered: valid, and nothing that had finished is missing."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msprobe_ms
from msprobe_ms.errors import DumpFormatError
from msprobe_ms.store import records
from msprobe_ms.store.journal import JOURNAL_NAME
from msprobe_ms.store.recover import recover
from msprobe_ms.store.text import field_text
from msprobe_ms.store.writer import DumpStore

TRAINING = Path(__file__).with_name("killed_training.py")


def start_training(dump_path: Path, task: str, level: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(TRAINING), str(dump_path), task, level]
    environment = {**os.environ, "PYTHONPATH": str(Path(msprobe_ms.__file__).parent.parent)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)


def kill_at(training: subprocess.Popen[bytes], seconds: float) -> list[str]:
    """Kill the training that long after it became ready; the lines it had written."""
    assert training.stdout is not None
    for line in training.stdout:
        if line == b"ready\n":
            break
    time.sleep(seconds)
    training.kill()
    lines = training.stdout.read().decode().splitlines(keepends=True)
    training.wait()
    return [line.strip() for line in lines if line.endswith("\n")]


def check(dump_path: Path, finished: list[str]) -> int:
    """Recover and compare with what had finished; the number of records that had."""
    if any(dump_path.rglob(JOURNAL_NAME)):
        assert not [found.problem for found in recover(dump_path) if found.problem]
    by_step: dict[str, set[str]] = defaultdict(set)
    for line in finished:
        step, entry = line.split()
        by_step[step].add(entry)
    for step, entries in by_step.items():
        (folder,) = (dump_path / f"step{step}").iterdir()
        files = {name: json.loads((folder / f"{name}.json").read_bytes()) for name in ("dump", "stack", "construct")}
        data = files["dump"]["data"]
        whole_backward = "backward" in entries
        entries -= {"backward"}
        if whole_backward:
            modules = {entry for entry in entries if entry.startswith("Cell.")}
            entries |= {entry.replace(".forward.", ".backward.") for entry in modules}
            entries |= {f"Cell.layers.{number}.Dense.parameters_grad.0" for number in range(3)}
        assert entries <= set(data), sorted(entries - set(data))
        assert entries - set(files["construct"]) <= {name for name in entries if ".parameters_grad." in name}
        assert {name for names, _ in files["stack"].values() for name in names} >= {
            n for n in entries if "forward" in n
        }
        check_tensors(folder, data)
    return sum(len(entries) for entries in by_step.values())


def check_tensors(folder: Path, value: Any) -> None:
    """Every tensor file that a record names is there and whole, and has the figures the record tells."""
    if isinstance(value, dict) and "data_name" in value:
        array = np.load(folder / "dump_tensor_data" / value["data_name"], allow_pickle=False)
        assert list(array.shape) == value["shape"]
        assert value["Max"] == float(array.max())
    elif isinstance(value, dict):
        for member in value.values():
            check_tensors(folder, member)
    elif isinstance(value, list):
        for member in value:
            check_tensors(folder, member)


def test_killed_at_random_moments(tmp_path: Path) -> None:
    """Invariant 4, nothing lost. While one training is killed the next one starts up."""
    plans = [(task, level) for level in ("mix", "L0") for task in ("statistics", "tensor")] * 2
    trainings = [start_training(tmp_path / "0", *plans[0])]
    finished = 0
    try:
        for number in range(len(plans)):
            if number + 1 < len(plans):
                trainings.append(start_training(tmp_path / str(number + 1), *plans[number + 1]))
            lines = kill_at(trainings[number], random.uniform(0, 0.5))
            finished += check(tmp_path / str(number), lines)
    finally:
        for training in trainings:
            training.kill()
            training.wait()
    assert finished > 100


# -- recovering --------------------------------------------------------------------------------------------------------


def unfinished(folder: Path, *names: str) -> None:
    store = DumpStore(folder, task="statistics", level="L0", framework="mindspore", tensors=False)
    for name in names:
        store.entry(name, [("output", field_text("output", [None]))])


def test_every_journal_below_a_folder(tmp_path: Path) -> None:
    unfinished(tmp_path / "step0" / "rank0", "a", "b")
    unfinished(tmp_path / "step0" / "rank1", "c")
    unfinished(tmp_path / "step1" / "rank0")
    found = list(recover(tmp_path))
    assert [(each.folder.relative_to(tmp_path).as_posix(), each.entries, each.problem) for each in found] == [
        ("step0/rank0", 2, ""), ("step0/rank1", 1, ""), ("step1/rank0", 0, ""),
    ]  # fmt: skip
    assert list(json.loads((tmp_path / "step0" / "rank0" / "dump.json").read_text())["data"]) == ["a", "b"]
    assert list(recover(tmp_path)) == found  # twice does no harm


def test_one_broken_journal_does_not_keep_the_others(tmp_path: Path) -> None:
    unfinished(tmp_path / "a", "a")
    unfinished(tmp_path / "b", "b")
    unfinished(tmp_path / "c", "c")
    (tmp_path / "a" / JOURNAL_NAME).write_bytes(b"not one")
    store = DumpStore(tmp_path / "d", task="statistics", level="L0", framework="mindspore", tensors=False)
    store._journal.append(records.ENTRY, b"damaged by something that also made a checksum")
    found = {each.folder.name: (each.entries, each.problem) for each in recover(tmp_path)}
    assert found["b"] == found["c"] == (1, "")
    assert found["a"][0] == found["d"][0] == 0
    assert "not a journal of msprobe_ms" in found["a"][1]
    assert "is not one of a dump" in found["d"][1]


def test_a_journal_torn_at_any_byte(tmp_path: Path) -> None:
    folder = tmp_path / "rank0"
    unfinished(folder, "a", "b")
    whole = (folder / JOURNAL_NAME).read_bytes()
    counts = []
    for length in range(len(whole) + 1):
        (folder / JOURNAL_NAME).write_bytes(whole[:length])
        (found,) = recover(folder)
        counts.append(found.entries)
        if not found.problem:
            assert list(json.loads((folder / "dump.json").read_text())["data"]) == ["a", "b"][: found.entries]
    assert counts == sorted(counts)
    assert counts[-1] == 2


@pytest.mark.parametrize("kind", ["missing", "file", "empty"])
def test_nothing_to_recover(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "dump"
    if kind == "file":
        path.write_text("")
    elif kind == "empty":
        path.mkdir()
    with pytest.raises(DumpFormatError) as caught:
        list(recover(path))
    assert str(caught.value) == f"{path}: " + (
        "nothing to recover here or below: no dump.journal. A dump that ended in good order has none; "
        "its dump.json is complete"
        if kind == "empty"
        else "not a folder; give a dump folder, one of its steps, or a rank of a step"
    )


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "rank0"
    unfinished(folder, "a")
    (folder / "dump.json").mkdir()  # nothing can replace it
    (found,) = recover(folder)
    assert found.entries == 0
    assert "dump.json" in found.problem
