"""Recording on a GPU. What can be tried without one, test_device_statistics.py tries on tensors of the CPU.

All of it is skipped where there is none. ``make device`` runs what a pretended device shows as well
(torture/pretended_device).
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from device_tensors import assert_as_on_host, tensors
from recording import FIGURES, leaves
from torch import nn
from torch.profiler import ProfilerActivity, profile

from msprobe_ms.arrays.statistics import checksum
from msprobe_ms.frameworks.pytorch import device_statistics
from msprobe_ms.frameworks.pytorch.framework import PyTorch
from msprobe_ms.pytorch import PrecisionDebugger

DEVICE = os.environ.get("MSPROBE_DEVICE", "cuda")
if DEVICE != "cuda":
    from torture import pretended_device

    pretended = pretended_device.install()

pytestmark = pytest.mark.skipif(DEVICE == "cuda" and not torch.cuda.is_available(), reason="there is no GPU")
cuda_alone = pytest.mark.skipif(DEVICE != "cuda", reason="only a GPU has what this is about")

LEVELS = ("L0", "L1", "mix")


class Net(nn.Module):
    """Embedding, attention, normalisation, a wide layer whose tensors are reduced on the device."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 64)
        self.attend = nn.MultiheadAttention(64, 4, batch_first=True)
        self.norm = nn.BatchNorm1d(32)
        self.wide = nn.Linear(64, 1024)
        self.head = nn.Linear(1024, 5)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        y, _ = self.attend(x, x, x, key_padding_mask=ids > 60)
        y = torch.cat([self.norm(x + y), x[:, :0]], dim=1)
        return self.head(torch.relu(self.wide(y))).float().square().mean()


@pytest.fixture(autouse=True)
def deterministic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)


def can_hold(tensor: torch.Tensor) -> bool:
    """A pretended device has no sparse tensors."""
    return DEVICE == "cuda" or not tensor.is_sparse


def trained(debugger: PrecisionDebugger | None, autocast: torch.dtype | None = None) -> list[torch.Tensor]:
    """Three steps of training, each recorded by a debugger: loss, weights and gradients of the last."""
    torch.manual_seed(5)
    net = Net().to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    ids = torch.randint(0, 50, (4, 32), device=DEVICE)
    for _ in range(3):
        optimizer.zero_grad()
        if debugger is not None:
            debugger.start(net, rank_id=0)
        with torch.autocast(DEVICE, dtype=autocast or torch.bfloat16, enabled=autocast is not None):
            loss = net(ids)
        loss.backward()
        optimizer.step()
        if debugger is not None:
            debugger.stop()
            debugger.step()
    return [loss.detach(), *net.parameters(), *(p.grad for p in net.parameters() if p.grad is not None)]


def debugger_of(folder: Path, **keys: Any) -> PrecisionDebugger:
    path = folder / "config.json"
    path.write_text(json.dumps({"task": "statistics", "dump_path": str(folder / "dump"), **keys}))
    return PrecisionDebugger(path)


def dump_of(folder: Path, step: int = 0) -> dict[str, Any]:
    """What is recorded of a step, of which nothing may be missing."""
    content = json.loads((folder / "dump" / f"step{step}" / "rank0" / "dump.json").read_text())
    assert "incomplete" not in content
    return content["data"]


def test_figures_of_every_kind_are_the_hosts(warnings: list[str]) -> None:
    framework, some = PyTorch(), {name: tensor for name, tensor in tensors().items() if can_hold(tensor)}
    pending = [framework.device_statistics(tensor.to(DEVICE), sketch=True, md5=False) for tensor in some.values()]
    for (name, tensor), figures in zip(some.items(), framework.read_statistics(pending), strict=True):
        assert_as_on_host(name, tensor, tuple(figures))


@cuda_alone
@pytest.mark.parametrize("size", [16, 1 << 20, 1 << 26])
def test_a_large_tensor_takes_a_bounded_part_of_the_memory(size: int) -> None:
    tensor = torch.randn(size, device=DEVICE, dtype=torch.bfloat16)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    pending = [PyTorch().device_statistics(tensor, sketch=True, md5=False) for _ in range(8)]
    assert torch.cuda.max_memory_allocated() - before < 100 << 20
    assert torch.cuda.memory_allocated() - before < 10 << 20
    found = PyTorch().read_statistics(pending)
    assert all(list(each) == list(found[0]) for each in found)


@pytest.mark.parametrize("autocast", [None, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("level", LEVELS)
def test_bits_of_a_training_stay(
    level: str, task: str, autocast: torch.dtype | None, tmp_path: Path, warnings: list[str]
) -> None:
    expected = trained(None, autocast)
    found = trained(debugger_of(tmp_path, level=level, task=task), autocast)
    assert all(torch.equal(one, other) for one, other in zip(expected, found, strict=True))
    assert warnings == []
    for step in range(3):
        data = dump_of(tmp_path, step)
        assert any("backward" in name for name in data)
        assert all(
            leaf["Norm"] is not None
            for _, leaf in leaves(data)
            if leaf["dtype"] != "torch.bool" and 0 not in leaf["shape"]
        )


@pytest.mark.parametrize("level", LEVELS)
def test_figures_are_those_of_the_tensors_beside_them(level: str, tmp_path: Path) -> None:
    """Statistics, computed on the device, of the same step as tensor files, which the host reads; and checksums."""
    data = {}
    for name, keys in {
        "statistics": {}, "tensor": {"task": "tensor"}, "md5": {"statistics": {"summary_mode": "md5"}},
    }.items():  # fmt: skip
        folder = tmp_path / name
        folder.mkdir()
        trained(debugger_of(folder, level=level, **keys))
        data[name] = dump_of(folder)
    assert list(data["statistics"]) == list(data["tensor"]) == list(data["md5"])
    files = tmp_path / "tensor" / "dump" / "step0" / "rank0" / "dump_tensor_data"
    found = zip(*(leaves(data[name]) for name in ("statistics", "tensor", "md5")), strict=True)
    for (place, on_device), (_, stored), (_, summed) in found:
        tensor = torch.load(files / stored["data_name"])
        assert tensor.device.type == "cpu" and str(tensor.dtype) == on_device["dtype"], place
        assert_as_on_host(str(place), tensor, (*(on_device[key] for key in FIGURES), on_device.get("Sketch")))
        assert summed["md5"] == checksum(PyTorch().to_numpy(tensor)), place


def counts(step: Callable[[], Any]) -> tuple[int, int]:
    """Launches on the device and read-backs of what is done."""
    if DEVICE != "cuda":
        before = pretended.counts()
        step()
        launches, read_backs = (now - then for now, then in zip(pretended.counts(), before, strict=True))
        return launches, read_backs
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        step()
        torch.cuda.synchronize()
    events = [event for event in found.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    return len(events), sum("DtoH" in event.name for event in events)


def test_launches_and_read_backs_are_few() -> None:
    framework = PyTorch()
    small, large = torch.randn(100, device=DEVICE), torch.randn(1 << 16, device=DEVICE)
    started: list[Any] = []
    for tensor, most in ((small, 1), (large, 9)):
        framework.device_statistics(tensor, sketch=True, md5=False)
        start = partial(framework.device_statistics, tensor, sketch=True, md5=False)
        launches, read_backs = counts(lambda: started.append(start()))  # noqa: B023
        assert launches <= most and read_backs == 0
    many = [framework.device_statistics(small, sketch=True, md5=False) for _ in range(500)]
    launches, read_backs = counts(lambda: framework.read_statistics([*started, *many]))
    assert read_backs == 1 and launches < 20


def test_a_tensor_that_is_written_is_read_back_once(tmp_path: Path) -> None:
    debugger = debugger_of(tmp_path, level="L1", task="tensor")
    x = torch.randn(40, 40, device=DEVICE)

    def recorded() -> None:
        debugger.start(rank_id=0)
        torch.relu(x).bfloat16()
        debugger.stop()
        debugger.step()

    recorded()
    _, read_backs = counts(recorded)
    assert read_backs == len(list(leaves(dump_of(tmp_path, 1)))) == 4


@cuda_alone
def test_a_graph_is_captured_while_a_step_is_recorded(tmp_path: Path, warnings: list[str]) -> None:
    net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8)).to(DEVICE)
    x = torch.randn(4, 64, device=DEVICE)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.no_grad():
        net(x)
    torch.cuda.current_stream().wait_stream(side)
    debugger = debugger_of(tmp_path, level="mix")
    debugger.start(net, rank_id=0)
    with torch.no_grad():
        before = net(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            inside = net(x)
        graph.replay()
        after = net(x)
    debugger.stop()
    debugger.step()
    assert torch.equal(inside, before) and torch.equal(after, before)
    assert warnings == []
    assert [name for name in dump_of(tmp_path) if name.startswith("Module.0.")] == [
        "Module.0.Linear.forward.0", "Module.0.Linear.forward.1",
    ]  # fmt: skip


@cuda_alone
def test_figures_of_another_stream(tmp_path: Path) -> None:
    """What is written later, on the stream that computed it, does not show; nothing is read before it is there."""
    debugger = debugger_of(tmp_path, level="L1")
    side = torch.cuda.Stream()
    large = torch.randn(2000, 2000, device=DEVICE)
    debugger.start(rank_id=0)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        product = large
        for _ in range(20):
            product = product @ large / 50
        few, many = torch.full((5,), 3.0, device=DEVICE), torch.full((300, 300), 3.0, device=DEVICE)
        torch.relu(few)
        torch.relu(many)
        few.zero_()
        many.zero_()
    debugger.stop()
    debugger.step()
    data = dump_of(tmp_path)
    for number in (0, 1):
        (given,) = data[f"Torch.relu.{number}.forward"]["input_args"]
        assert (given["Max"], given["Min"], given["Mean"]) == (3.0, 3.0, 3.0)


@cuda_alone
def test_a_compiled_function_stays_what_it_is(tmp_path: Path) -> None:
    compiled = torch.compile(lambda x: torch.relu(x @ x).sum())
    x = torch.randn(64, 64, device=DEVICE, requires_grad=True)
    expected = compiled(x)
    expected.backward()
    gradient, x.grad = x.grad, None
    debugger = debugger_of(tmp_path, level="L1")
    debugger.start(rank_id=0)
    found = compiled(x)
    found.backward()
    debugger.stop()
    debugger.step()
    assert gradient is not None and x.grad is not None
    assert torch.equal(found, expected) and torch.equal(x.grad, gradient)


def test_threads_train_at_the_same_time(tmp_path: Path, warnings: list[str]) -> None:
    nets = nn.ModuleList([nn.Linear(32, 400), nn.Linear(32, 400)]).to(DEVICE)
    debugger = debugger_of(tmp_path, level="L0")
    debugger.start(nets, rank_id=0)

    def train(net: nn.Module) -> None:
        for _ in range(5):
            net(torch.randn(64, 32, device=DEVICE)).sum().backward()

    threads = [threading.Thread(target=train, args=(net,)) for net in nets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    debugger.stop()
    debugger.step()
    data = dump_of(tmp_path)
    assert warnings == []
    for number in range(2):
        assert len([name for name in data if name.startswith(f"Module.{number}.Linear.forward")]) == 5
        assert len([name for name in data if name.startswith(f"Module.{number}.Linear.backward")]) == 5
    assert all(leaf["Max"] is not None for _, leaf in leaves(data))


def test_tensors_of_the_device_are_its_own() -> None:
    assert device_statistics.is_on_device(torch.ones(1, device=DEVICE))
    assert not device_statistics.is_on_device(torch.ones(1))
