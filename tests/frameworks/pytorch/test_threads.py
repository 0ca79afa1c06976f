"""A network that other threads call, as servers and asynchronous actors do, while the main starts and ends steps."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.dump.writing.writer import ERROR_LOG, TENSOR_FOLDER
from msprobe_ms.pytorch import PrecisionDebugger
from msprobe_ms.support.stand_in import StandIn


class Waiting(torch.nn.Module):
    """Says that it was entered, and goes on when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(4, 3)
        self.entered, self.may_go = threading.Event(), threading.Event()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.entered.set()
        assert self.may_go.wait(20)
        return self.inner(x)


class Gathering(torch.nn.Module):
    def forward(self, tensors: list[torch.Tensor]) -> torch.Tensor:
        return torch.stack(tensors).sum(0)


def entries(folder: Path) -> dict[str, Any]:
    """Those of a dump that lacks nothing, whose files are all there."""
    content = json.loads((folder / "dump.json").read_text())
    assert "incomplete" not in content
    dump = read_dump(folder)
    for entry in dump.entries.values():
        for item in entry.items:
            if item.data_name is not None:
                dump.tensors.load(item)
    return content["data"]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_call_that_lasts_longer_than_its_step_belongs_to_none(
    tmp_path: Path, warnings: list[str], is_async: bool
) -> None:
    """Neither its own step nor the next, which is recorded while it ends, holds anything of it or lacks anything."""
    (tmp_path / "config.json").write_text(json.dumps({"task": "tensor", "level": "mix", "async_dump": is_async}))
    debugger = PrecisionDebugger(tmp_path / "config.json", dump_path=tmp_path / "dump")
    net, x = torch.nn.Sequential(torch.nn.Linear(4, 4), Waiting()), torch.ones(2, 4)
    waiting: Waiting = net[1]
    waiting.may_go.set()
    expected = net(x).tolist()
    waiting.may_go.clear()
    results = []
    thread = threading.Thread(target=lambda: results.append(net(x)))
    debugger.start(net, rank_id=0)
    waiting.entered.clear()
    thread.start()
    assert waiting.entered.wait(20)
    debugger.stop()
    debugger.step()
    debugger.start(net, rank_id=0)
    waiting.may_go.set()
    thread.join(20)
    net(x).sum().backward()
    debugger.stop()
    debugger.step()
    results[0].sum().backward()
    assert results[0].tolist() == expected
    assert warnings == []
    first, second = (tmp_path / "dump" / f"step{step}" / "rank0" for step in range(2))
    assert not list(tmp_path.rglob(ERROR_LOG))
    assert [name for name in entries(first) if "forward" in name] == [
        "Functional.linear.0.forward", "Module.0.Linear.forward.0",
    ]  # fmt: skip
    assert {"Module.0.Linear.forward.0", "Module.1.Waiting.forward.0", "Module.1.Waiting.backward.0"} <= {
        *entries(second)
    }


def test_a_step_that_ends_while_another_thread_is_being_recorded_loses_that_alone(
    tmp_path: Path, warnings: list[str]
) -> None:
    debugger = PrecisionDebugger(dump_path=tmp_path, level="L0", task="tensor")
    net = torch.nn.ModuleList([torch.nn.Linear(4, 4), Gathering()])
    many = [torch.ones(4) for _ in range(3000)]
    debugger.start(net, rank_id=0)
    net[0](torch.ones(2, 4))
    results = []
    thread = threading.Thread(target=lambda: results.append(net[1](many)))
    thread.start()
    files = tmp_path / "step0" / "rank0" / TENSOR_FOLDER
    while thread.is_alive() and not list(files.glob("Module.1.*")):
        continue
    debugger.stop()
    debugger.step()
    thread.join(20)
    assert len(list(files.glob("Module.1.*"))) < len(many), "the step ended too late to test anything"
    assert results[0].tolist() == [3000.0] * 4
    assert warnings == []
    assert list(entries(tmp_path / "step0" / "rank0")) == ["Module.0.Linear.forward.0"]
    assert not list(tmp_path.rglob(ERROR_LOG))


def test_threads_may_start_and_stop_at_the_same_time(tmp_path: Path) -> None:
    """Each with a debugger of its own, and both with one: nothing is left, and no call is harmed."""
    shared, net, failed = PrecisionDebugger(dump_path=tmp_path / "a", level="mix"), torch.nn.Linear(4, 4), list[Any]()
    end = time.monotonic() + 1

    def record(debugger: PrecisionDebugger) -> None:
        try:
            while time.monotonic() < end:
                debugger.start(net)
                torch.relu(net(torch.ones(2, 4)))
                debugger.stop()
                debugger.step()
        except Exception as error:
            failed.append(error)

    own = PrecisionDebugger(dump_path=tmp_path / "b", level="mix")
    threads = [threading.Thread(target=record, args=(debugger,)) for debugger in (shared, shared, own)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shared.retire()
    own.retire()
    assert not failed
    assert not net._forward_hooks and not net._forward_pre_hooks and not net.weight._backward_hooks
    assert not isinstance(torch.relu, StandIn)
