"""Invariant 7: what the tool holds has a cap, ``max_memory``; what does not fit is left out, counted and said."""

from __future__ import annotations

import json
import threading
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from mindspore import Tensor, ops
from recording import leaves, read_step, write_config

from msprobe_ms.config import load_config
from msprobe_ms.dump.writing.memory_budget import MemoryBudget, OutOfMemory
from msprobe_ms.dump.writing.writer import ERROR_LOG, TENSOR_FOLDER, DumpStore, EntryPart
from msprobe_ms.frameworks.graph_observer import Described, Place
from msprobe_ms.frameworks.pytorch.framework import PyTorch
from msprobe_ms.mindspore import PrecisionDebugger as MindSporeDebugger
from msprobe_ms.pytorch import PrecisionDebugger
from msprobe_ms.recording.graphs.graph_recorder import GraphRecorder
from msprobe_ms.recording.output import tensor_writer
from msprobe_ms.recording.output.step_dump import StepDump
from msprobe_ms.recording.progress import Status
from msprobe_ms.support import folder as folders
from torture.bounded import MIB, Disk, peak_of


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """Tensor files go to it; training waits a second for it, where users' waits ten."""
    disk = Disk()
    monkeypatch.setattr(folders, "replacing", disk.replacing)
    monkeypatch.setattr(tensor_writer, "PATIENCE", 1.0)
    yield disk
    disk.close()


def test_a_disk_that_stands_still(dump_path: Path, disk: Disk, warnings: list[str]) -> None:
    """Training goes on without it, memory stays below the cap, and what has no file is counted and said."""
    config = write_config(dump_path, level="L1", task="tensor", async_dump=True, max_memory=16)
    debugger = PrecisionDebugger(config)
    values = np.arange(MIB // 4, dtype=np.float32)
    x = torch.from_numpy(values)
    debugger.start()
    torch.relu(x)
    disk.stands_still()
    rescue = threading.Timer(30, disk.goes_on)
    rescue.start()

    def train() -> None:
        for _ in range(100):
            values[:] += 1  # What was written before would need no disk but a link.
            torch.relu(x)

    begun = time.monotonic()
    peak = peak_of(train)
    took = time.monotonic() - begun
    disk.goes_on()
    rescue.cancel()
    debugger.stop()
    debugger.step()
    assert took < 15, "it waited for the disk once, not for each tensor"
    assert peak < 24 * MIB
    step = read_step(dump_path, troubles=True)
    assert len(step.data) == 101, "figures need no disk of tensors"
    found = [leaf for _, leaf in leaves(step.data)]
    named = [leaf["data_name"] for leaf in found if "data_name" in leaf]
    assert {path.name for path in (step.folder / TENSOR_FOLDER).iterdir()} == set(named)
    lines = (step.folder / ERROR_LOG).read_text().splitlines()
    assert len(found) - len(named) == len(lines) > 100
    assert f"the first of {len(lines)} problems" in json.loads((step.folder / "dump.json").read_text())["incomplete"]
    assert all("OutOfMemory: max_memory, 16 MiB, is in use and the disk takes nothing" in line for line in lines)
    first, last = warnings
    assert "could not be recorded: OutOfMemory: max_memory, 16 MiB, is in use and the disk takes nothing" in first
    assert last == f"{step.folder}: {len(lines)} problems, see dump_error_info.log"


def test_a_disk_that_is_slow_loses_nothing(dump_path: Path, disk: Disk, warnings: list[str]) -> None:
    """It stands still again and again, each time for less than training is ready to wait."""
    debugger = PrecisionDebugger(write_config(dump_path, level="L1", task="tensor", async_dump=True, max_memory=4))
    values = np.arange(MIB // 4, dtype=np.float32)
    x = torch.from_numpy(values)
    over = threading.Event()

    def falter() -> None:
        while not over.wait(0.02):
            disk.stands_still()
            over.wait(0.2)
            disk.goes_on()

    faltering = threading.Thread(target=falter)
    debugger.start()
    faltering.start()
    try:
        for _ in range(10):
            values[:] += 1
            torch.relu(x)
    finally:
        over.set()
        faltering.join()
    debugger.stop()
    debugger.step()
    assert all("data_name" in leaf for _, leaf in leaves(read_step(dump_path).data))
    assert not warnings


def test_a_tensor_too_large_to_be_copied_is_written_at_once(dump_path: Path, warnings: list[str]) -> None:
    debugger = PrecisionDebugger(write_config(dump_path, level="L1", task="tensor", async_dump=True, max_memory=1))
    x = torch.arange(MIB, dtype=torch.float32)
    debugger.start()
    for _ in range(3):
        x.add_(1)
    debugger.stop()
    debugger.step()
    step = read_step(dump_path)
    for number in range(3):
        name = step.data[f"Tensor.add_.{number}.forward"]["output"][0]["data_name"]
        stored = torch.load(step.folder / TENSOR_FOLDER / name).numpy()
        assert np.array_equal(stored, np.arange(MIB, dtype=np.float32) + number + 1)
    assert not warnings


def test_calls_that_are_open_hold_no_more_than_the_cap(dump_path: Path, warnings: list[str]) -> None:
    """Task overflow_check keeps the inputs of each call until it is known whether it overflows."""

    class Nest(torch.nn.Module):
        def __init__(self, depth: int) -> None:
            super().__init__()
            self.inner = Nest(depth - 1) if depth else torch.nn.Identity()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x * 1) + torch.inf

    net = Nest(40)
    keys = {"level": "L0", "task": "overflow_check", "overflow_nums": -1, "max_memory": 8}
    debugger = PrecisionDebugger(write_config(dump_path, **keys))
    debugger.start(net)
    peak = peak_of(lambda: net(torch.ones(MIB // 4)))
    debugger.stop()
    debugger.step()
    # Python's own: one tensor on each level of the net.
    assert peak < (41 + 8 + 8) * MIB
    step = read_step(dump_path, troubles=True)
    assert len(step.data) == 40
    without = [leaf for _, leaf in leaves(step.data) if "data_name" not in leaf]
    lines = (step.folder / ERROR_LOG).read_text().splitlines()
    assert len(without) == len(lines) > 20
    assert "OutOfMemory: max_memory, 8 MiB, was in use for the calls that were open" in lines[0]
    assert sum("could not be recorded" in text for text in warnings) == 1


def _many_kernels(x: Tensor) -> Tensor:
    for _ in range(200):
        x = ops.tanh(x)
    return x


def test_kernels_of_one_call_are_not_all_held(ms: Any, dump_path: Path) -> None:
    """Level L2 holds what kernels of a call wrote, to see what none of them did."""
    module = types.ModuleType("users")
    module.many_kernels = _many_kernels  # type: ignore[attr-defined]
    debugger = MindSporeDebugger(write_config(dump_path, level="L2", max_memory=8))
    debugger.register_custom_api(module, "many_kernels")
    x = Tensor(np.ones(MIB // 4, np.float32))
    debugger.start()
    module.many_kernels(x[:1])
    peak = peak_of(lambda: module.many_kernels(x))
    debugger.stop()
    debugger.step()
    debugger.restore_custom_api(module, "many_kernels")
    kernels = read_step(dump_path).data
    assert len(kernels) >= 400
    assert not [name for name in kernels if "many_kernels" in name], "its output was written by a kernel that was seen"
    assert peak < 64 * MIB


@pytest.mark.parametrize("keys", [{"task": "structure"}, {"task": "tensor"}, {"task": "tensor", "async_dump": True}])
def test_a_step_of_more_entries_than_the_cap_can_find(
    dump_path: Path, warnings: list[str], keys: dict[str, Any]
) -> None:
    """What is recorded reads, what is not is counted, training goes on."""
    debugger = PrecisionDebugger(write_config(dump_path, level="L1", max_memory=1, **keys))
    x = torch.ones(1)
    debugger.start()
    for _ in range(1500):
        torch.relu(x)
    debugger.stop()
    debugger.step()
    step = read_step(dump_path, troubles=True)
    lines = (step.folder / ERROR_LOG).read_text().splitlines()
    assert len(step.data) + len(lines) == 1500
    assert 600 < len(step.data) < 1000
    assert list(step.data)[-1] == f"Torch.relu.{len(step.data) - 1}.forward"
    assert "OutOfMemory: max_memory, 1 MiB, holds no more entries of one step" in lines[0]
    first, last = warnings
    assert "could not be recorded" in first and last.endswith(f"{len(lines)} problems, see dump_error_info.log")
    if keys["task"] == "tensor":
        files = {file.name for file in (step.folder / TENSOR_FOLDER).iterdir()}
        named = {leaf["data_name"] for _, leaf in leaves(step.data)}
        assert named <= files
        assert len(files - named) <= 2, "files of entries that were refused, beyond the first"


def test_export_takes_what_the_cap_allows(tmp_path: Path) -> None:
    """As many entries as fit, with long names, many fields and deep stacks, are exported within the cap."""
    cap = 32 * MIB
    store = DumpStore(
        tmp_path / "rank0", task="statistics", level="L0", framework="pytorch", tensors=False, memory=MemoryBudget(cap)
    )
    store.call_site(0, ["File /a/b.py, line 3, in forward, \n x = layer(x)"])
    fields = [(name, [None]) for name in ("input_args", "input_kwargs", "output", "parameters")]
    parent = "Module.layers.7.attention.Attention.forward.0"
    recorded = 0
    with pytest.raises(OutOfMemory):  # noqa: PT012 - which entry is the last is not known
        while True:
            name = f"Module.layers.7.attention.softmax.Softmax.forward.{recorded}"
            store.entry(EntryPart(name, fields, parent, 0))
            recorded += 1
    assert recorded > 20_000
    assert peak_of(store.export) < cap
    assert store.exported_entries == recorded
    store.close()


class Two(torch.nn.Module):
    """Two results, of which only the first is used."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.neg(x)
        return torch.neg(y), y.mean()


class Chain(torch.nn.Module):
    def __init__(self, length: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(Two() for _ in range(length))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)[0]
        return x.sum()


def test_gradients_do_not_wait_for_those_that_never_come(dump_path: Path) -> None:
    """A module whose second result is not used: autograd lets go of the gradient of the first, and so does the tool."""
    net, x = Chain(100), torch.ones(MIB // 4, requires_grad=True)
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    debugger.start(net)
    loss = net(x)
    peak = peak_of(loss.backward)
    debugger.stop()
    debugger.step()
    assert peak < 32 * MIB
    backward = read_step(dump_path).data["Module.layers.3.Two.backward.0"]
    assert [leaf and leaf["Max"] for leaf in backward["input"]] == [1, None]


class Both(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.two = Two()

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        first, second = self.two(x * 2)
        return first.sum(), second.sum()


def test_each_pass_has_the_gradients_of_its_own(dump_path: Path) -> None:
    """Two passes through one graph: what came in the first is not taken for the second's."""
    net = Both()
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    debugger.start(net)
    first, second = net(torch.ones(3, requires_grad=True))
    (first + second).backward(retain_graph=True)
    (first * 3).backward()
    debugger.stop()
    debugger.step()
    backward = read_step(dump_path).data["Module.two.Two.backward.0"]
    assert [leaf and leaf["Max"] for leaf in backward["input"]] == [3, None]


def test_what_another_thread_hands_back_may_be_taken_again() -> None:
    memory = MemoryBudget(MIB)
    assert memory.take(MIB // 2)
    assert not memory.take(MIB // 2)
    memory.hand_back(MIB // 2)
    assert memory.take(MIB // 2)
    assert not memory.wait(0.01)


def test_what_a_call_that_raised_was_given_is_held_no_longer(dump_path: Path) -> None:
    """Its inputs would take the room of those that overflow later."""
    path = write_config(
        dump_path, level="L1", task="overflow_check", overflow_check={"overflow_nums": -1}, max_memory=1
    )
    debugger = PrecisionDebugger(path)
    debugger.start()
    for _ in range(3):
        with pytest.raises(RuntimeError):
            torch.matmul(torch.ones(120_000), torch.ones(3))
    torch.div(torch.ones(100_000), 0.0)
    debugger.stop()
    debugger.step()
    step = read_step(dump_path)
    (entry,) = step.data
    assert [leaf["data_name"] for _, leaf in leaves(step.data[entry]) if "data_name" in leaf] == [
        f"{entry}.input.0.pt",
        f"{entry}.output.0.pt",
    ]


def test_gradients_that_come_before_their_call_has_ended(tmp_path: Path, warnings: list[str]) -> None:
    """Compiled graphs may hand them over in any order: copies of them wait, as many as the cap allows."""
    config = load_config(dump_path=tmp_path, level="L0")
    dump = StepDump(config, PyTorch(), tmp_path / "rank0", MemoryBudget(MIB), set())
    recorder = GraphRecorder(config, PyTorch(), dump)
    recorder.observe(["Module.fc.Linear"])
    size = 80_000
    call = recorder.begins(0, [Described("torch.float32", (size,), True)] * 4, {})
    for number in range(4):
        place = Place("input", (str(number),), True, "torch.float32")
        recorder.value(call, place, np.full(size, number, np.float32))
    recorder.ends(call, Described("torch.float32", (size,), True))
    assert dump.budget.take(MIB * 3 // 4), "what waited is let go"
    dump.sinks.close()
    dump.close(Status(config, 0), lambda: None)
    data = json.loads((tmp_path / "rank0" / "dump.json").read_text())["data"]
    gradients = data["Module.fc.Linear.backward.0"]["output"]
    assert [gradient and gradient["Max"] for gradient in gradients] == [0, 1, None, None]
    lines = (tmp_path / "rank0" / ERROR_LOG).read_text().splitlines()
    assert len(lines) == 2
    assert "OutOfMemory: max_memory, 1 MiB, was in use when the gradient came before its call had ended" in lines[0]
    assert sum("could not be recorded" in text for text in warnings) == 1
