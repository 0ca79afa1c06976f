"""Figures computed where tensors are and read back together, here on the CPU: what a GPU is sent."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from forked import run_forked
from recording import FIGURES, SKETCH, leaves, same_sketch
from torch import nn

import msprobe_ms.recording.output.deferred_statistics
from msprobe_ms.arrays.statistics import summary
from msprobe_ms.frameworks.pytorch import device_statistics
from msprobe_ms.pytorch import PrecisionDebugger


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tensors count as a device's; how many each read-back was for."""
    counts: list[int] = []
    read = device_statistics.read

    def counting(found: Any) -> Any:
        counts.append(len(found))
        return read(found)

    monkeypatch.setattr(device_statistics, "is_on_device", lambda tensor: True)
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
    debugger = PrecisionDebugger(dump_path=folder, level=level)
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
@pytest.mark.parametrize("level", ["L0", "L1", "mix"])
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
        "device_statistics.is_on_device = lambda tensor: True\n"
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

    def failing(found: Any) -> Any:
        if any(float(one.values[0]) == 7.0 for one in found if one.values):
            raise RuntimeError("unreadable")
        return read(found)

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


def test_large_tensors_are_summed_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = torch.randn(700, 40, 13).transpose(0, 1)
    ((*whole, sketch),) = device_statistics.read([device_statistics.start(tensor, None, sketch=True)])
    monkeypatch.setattr(device_statistics, "_WIDENED", 1 << 17)
    ((*pieces, again),) = device_statistics.read([device_statistics.start(tensor, None, sketch=True)])
    assert pieces == pytest.approx(whole, rel=1e-12)
    assert sketch is not None and same_sketch(sketch, again)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bool])
@pytest.mark.parametrize("size", [4, 30, 9000])
def test_what_is_written_later_does_not_show_in_a_sketch(dtype: torch.dtype, size: int) -> None:
    tensor = (torch.arange(size) % 3).to(dtype)
    expected = summary(tensor.numpy())[1]
    pending = device_statistics.start(tensor, None, sketch=True)
    tensor.zero_()
    assert same_sketch(device_statistics.read([pending])[0][4], expected)
