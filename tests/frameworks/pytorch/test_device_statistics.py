"""Figures computed where tensors are and read back together, here on the CPU: what a GPU is sent."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from device_tensors import assert_as_on_host, tensors
from forked import run_forked
from recording import FIGURES, SKETCH, leaves, same_sketch, write_config
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import msprobe_ms.recording.output.deferred_statistics
from msprobe_ms.arrays.statistics import summary
from msprobe_ms.frameworks.pytorch import device_statistics
from msprobe_ms.frameworks.pytorch.framework import PyTorch
from msprobe_ms.pytorch import PrecisionDebugger


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tensors count as a device's; how many each read-back was for."""
    counts: list[int] = []
    read = device_statistics.read

    def counting(found: Any, figures: Any) -> Any:
        counts.append(len(found))
        return read(found, figures)

    monkeypatch.setattr(device_statistics, "is_on_device", lambda tensor: True)
    monkeypatch.setattr(PyTorch, "elements", lambda self, tensor: None)  # no memory of a device is at hand
    monkeypatch.setattr(PyTorch, "places", lambda self: None)
    monkeypatch.setattr(device_statistics, "read", counting)
    return counts


class Net(nn.Module):
    """Embedding, attention, normalisation; integers, booleans, scalars and an empty tensor on the way."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(8, 3)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        mask = ids > 30
        y, _ = self.attend(x, x, x, key_padding_mask=mask)
        y = torch.cat([self.norm(x + y), x[:, :0]], dim=1).to(torch.bfloat16).float()
        return self.head(y).square().mean()


def step(folder: Path, level: str) -> tuple[dict[str, Any], list[torch.Tensor]]:
    torch.manual_seed(3)
    net = Net()
    ids = torch.randint(0, 20, (2, 4))
    level, _, mode = level.partition(" ")
    debugger = PrecisionDebugger(write_config(folder, level=level, summary_mode=mode or "statistics"))
    debugger.start(net)
    net(ids).backward()
    debugger.stop()
    debugger.step()
    (found,) = folder.glob("step0/*/dump.json")
    return json.loads(found.read_text())["data"], [parameter.grad for parameter in net.parameters()]


def close(one: Any, other: Any, scale: float) -> bool:
    if isinstance(one, (int, float)) and isinstance(other, (int, float)) and not isinstance(one, bool):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6 * scale)
    return type(one) is type(other) and bool(one == other)


@pytest.mark.parametrize("most", [1, 7, 1024])
@pytest.mark.parametrize("level", ["L0", "L1", "mix", "mix md5"])
def test_a_dump_is_the_hosts_with_few_read_backs(
    tmp_path: Path, level: str, most: int, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    on_host, host = step(tmp_path / "host", level)
    monkeypatch.setattr(msprobe_ms.recording.output.deferred_statistics, "MOST", most)
    monkeypatch.setattr(msprobe_ms.recording.output.deferred_statistics, "LONGEST", 1000.0)
    reads = request.getfixturevalue("reads")
    on_device, device = step(tmp_path / "device", level)
    assert list(on_host) == list(on_device)
    for (place, one), (_, other) in zip(leaves(on_host), leaves(on_device), strict=True):
        scale = max((abs(one[key]) for key in FIGURES[:2] if isinstance(one[key], float)), default=0.0)
        assert all(close(one[key], other[key], scale) for key in FIGURES), (place, one, other)
        assert same_sketch(one.get(SKETCH), other.get(SKETCH)), (place, one, other)
        assert {key: one[key] for key in one.keys() - {*FIGURES, SKETCH}} == {
            key: other[key] for key in other.keys() - {*FIGURES, SKETCH}
        }
    assert all(torch.equal(one, other) for one, other in zip(host, device, strict=True))
    assert sum(reads) > 10
    assert len(reads) == 1 if most == 1024 else len(reads) > 3


def test_what_waits_is_there_when_the_script_fails(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n"
        "from msprobe_ms.frameworks.pytorch import device_statistics\n"
        "from msprobe_ms.pytorch import PrecisionDebugger\n"
        "from msprobe_ms.frameworks.pytorch.framework import PyTorch\n"
        "device_statistics.is_on_device = lambda tensor: True\n"
        "PyTorch.elements = lambda self, tensor: None\n"
        "net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())\n"
        f"debugger = PrecisionDebugger(dump_path={str(tmp_path / 'dump')!r}, level='L0')\n"
        "debugger.start(net)\n"
        "net(torch.ones(2, 4))\n"
        "raise ValueError('the loader is empty')\n"
    )
    done = run_forked(script, framework="torch")
    assert done.returncode == 1
    assert "the loader is empty" in done.stderr
    (found,) = (tmp_path / "dump").glob("step0/*/dump.json")
    data = json.loads(found.read_text())["data"]
    figures = [leaf[key] for _, leaf in leaves(data) for key in FIGURES]
    assert "Module.1.ReLU.forward.0" in data
    assert figures
    assert all(isinstance(figure, float) for figure in figures)


def test_an_entry_waits_no_longer_than_said(tmp_path: Path, reads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(msprobe_ms.recording.output.deferred_statistics, "LONGEST", 0.0)
    step(tmp_path, "L0")
    assert len(reads) > 5


def test_a_value_that_is_saved_is_no_empty_step(tmp_path: Path, reads: list[int], warnings: list[str]) -> None:
    debugger = PrecisionDebugger(dump_path=tmp_path, level="debug")
    debugger.save(torch.ones(3), "ones")
    debugger.step()
    (found,) = tmp_path.glob("step0/*/debug.json")
    assert json.loads(found.read_text())["data"]["ones.0.debug"]["Max"] == 1.0
    assert reads == [1]
    assert warnings == []


def test_one_tensor_that_cannot_be_read_costs_only_its_own_figures(
    tmp_path: Path, reads: list[int], warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = device_statistics.read

    def failing(found: Any, figures: Any) -> Any:
        if any(float(one.tensor[0]) == 7.0 for one in found):
            raise RuntimeError("unreadable")
        return read(found, figures)

    monkeypatch.setattr(device_statistics, "read", failing)
    debugger = PrecisionDebugger(dump_path=tmp_path, level="L1")
    debugger.start()
    for value in (1.0, 7.0, 2.0):
        torch.relu(torch.full((2,), value))
    debugger.stop()
    debugger.step()
    (found,) = tmp_path.glob("step0/*/dump.json")
    content = json.loads(found.read_text())
    assert [content["data"][f"Torch.relu.{n}.forward"]["output"][0]["Max"] for n in range(3)] == [1.0, None, 2.0]
    assert content["incomplete"]
    assert any("unreadable" in text for text in warnings)


def figures_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Max, Min, Mean, Norm and sketch of a tensor that counts as a device's."""
    framework = PyTorch()
    return tuple(framework.read_statistics([framework.device_statistics(tensor, sketch=True, md5=False)])[0])


@pytest.mark.parametrize("autocast", [None, torch.bfloat16, torch.float16])
def test_figures_of_every_kind_are_the_hosts(
    autocast: torch.dtype | None, reads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under autocast, too, of whatever dtype: what it does to the script's operations it does not do to ours."""
    monkeypatch.setattr(device_statistics, "_WIDENED", 1 << 18)  # so that there are several pieces
    with torch.autocast("cpu", dtype=autocast or torch.bfloat16, enabled=autocast is not None):
        found = {name: figures_of(tensor) for name, tensor in tensors().items()}
    monkeypatch.setattr(device_statistics, "is_on_device", lambda tensor: False)
    torch.manual_seed(20)
    for name, tensor in tensors().items():
        assert_as_on_host(name, tensor, found[name])


def test_tensors_of_every_kind_are_read_back_together(reads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    framework, some = PyTorch(), tensors()
    pending = [framework.device_statistics(tensor, sketch=True, md5=False) for tensor in some.values()]
    found = framework.read_statistics(pending)
    monkeypatch.setattr(device_statistics, "is_on_device", lambda tensor: False)
    for (name, tensor), figures in zip(some.items(), found, strict=True):
        assert_as_on_host(name, tensor, tuple(figures))
    assert reads == [len(some)]


def test_a_tensor_of_no_numbers_costs_no_other_its_figures(
    tmp_path: Path, reads: list[int], warnings: list[str]
) -> None:
    debugger = PrecisionDebugger(dump_path=tmp_path, level="debug")
    debugger.save({"packed": torch.zeros(4, dtype=torch.bits8), "ones": torch.ones(3)}, "both")
    debugger.step()
    (found,) = tmp_path.glob("step0/*/debug.json")
    both = json.loads(found.read_text())["data"]["both.0.debug"]
    assert both["packed"]["dtype"] == "torch.bits8" and both["packed"]["Max"] is None
    assert both["ones"]["Max"] == 1.0
    assert reads == [1] and not warnings


class Launches(TorchDispatchMode):
    """Operations that a device would be sent."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if "view" not in function.__name__ and not any(each.alias_info for each in function._schema.arguments):
            self.names.append(function.__name__)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("tensor", "most"),
    [
        (torch.randn(()), 1),
        (torch.randn(7, 3).t().bfloat16(), 1),
        (torch.arange(4000), 1),
        (torch.randn(1 << 16), 8),
        (torch.randn(3 << 16).half(), 8),
        (torch.randn(70_001), 14),
    ],
)  # fmt: skip
def test_a_device_is_sent_few_operations(tensor: torch.Tensor, most: int) -> None:
    device_statistics.start(tensor, None, sketch=True)  # tables are made once
    with Launches() as launches:
        device_statistics.start(tensor, None, sketch=True)
    assert 1 <= len(launches.names) <= most, launches.names


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bool])
@pytest.mark.parametrize("size", [4, 30, 9000])
def test_what_is_written_later_does_not_show(dtype: torch.dtype, size: int, reads: list[int]) -> None:
    tensor = (torch.arange(size) % 3).to(dtype)
    expected = summary(tensor.numpy())
    framework = PyTorch()
    pending = framework.device_statistics(tensor, sketch=True, md5=False)
    tensor.zero_()
    *found, sketch, _ = framework.read_statistics([pending])[0]
    assert found[:2] == list(expected[0][:2])
    assert same_sketch(sketch, expected[1])


def test_a_tensor_that_is_written_is_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[torch.Tensor] = []

    def on_host(self: PyTorch, tensor: torch.Tensor) -> torch.Tensor:
        fetched.append(tensor)
        return tensor.detach().clone()

    monkeypatch.setattr(PyTorch, "on_host", on_host)
    monkeypatch.setattr(PyTorch, "elements", lambda self, tensor: None)  # as of a tensor that lies on a device
    debugger = PrecisionDebugger(dump_path=tmp_path, level="L1", task="tensor")
    debugger.start()
    ones = torch.ones(3, requires_grad=True)
    torch.relu(ones).bfloat16()
    debugger.stop()
    debugger.step()
    (found,) = tmp_path.glob("step0/*/dump.json")
    (*_, folder) = tmp_path.glob("step0/*/dump_tensor_data")
    written = [leaf for _, leaf in leaves(json.loads(found.read_text())["data"])]
    assert len(written) == len(fetched) == len(list(folder.iterdir())) >= 4
    assert [str(torch.load(folder / leaf["data_name"]).dtype) for leaf in written] == [
        leaf["dtype"] for leaf in written
    ]
    assert written[0]["requires_grad"]
