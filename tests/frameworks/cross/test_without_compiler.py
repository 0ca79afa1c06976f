"""A dump is the same whether an install had a compiler or not: its files to the byte, its figures but for rounding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
import torch
from mindspore import Tensor
from recording import leaves, read_step, recording, write_config

from msprobe_ms.arrays import one_pass
from msprobe_ms.arrays.sketch import decode
from msprobe_ms.pytorch import PrecisionDebugger

pytestmark = pytest.mark.skipif(not one_pass.is_built(), reason="the extension is not built")


def record_torch(folder: Path, task: str) -> None:
    debugger = PrecisionDebugger(write_config(folder, level="L1", task=task))
    torch.manual_seed(0)
    x = torch.rand(3, 64, 50, requires_grad=True)
    debugger.start()
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.complex64):
        y = x.to(dtype)
        torch.transpose(torch.transpose(y, 1, 2).contiguous(), 1, 2)
        torch.abs(y[:, 1::2])
        torch.sum(y.expand(2, 3, 64, 50))
    torch.relu(torch.arange(7))
    torch.logical_not(torch.tensor(True))
    torch.relu(torch.zeros(3, 0))
    torch.relu(x).sum().backward()
    debugger.stop()
    debugger.step()


def record_mindspore(folder: Path, task: str) -> None:
    mindspore.set_seed(0)
    with recording(None, folder, level="L1", task=task):
        x = mindspore.ops.arange(0, 9600).reshape(3, 64, 50)
        for dtype in (mindspore.float32, mindspore.bfloat16, mindspore.float16, mindspore.int8, mindspore.bool_):
            y = x.astype(dtype)
            mindspore.ops.reshape(y.swapaxes(1, 2), (-1,))
            mindspore.ops.reshape(y[:, 1::2], (-1,))
        mindspore.ops.relu(Tensor(2.0))


@pytest.mark.parametrize("task", ["tensor", "statistics"])
@pytest.mark.parametrize("record", [record_torch, record_mindspore])
def test_dumps_are_the_same(ms: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: Any, task: str) -> None:
    record(tmp_path / "built", task)
    monkeypatch.setattr(one_pass, "_figures", None)
    record(tmp_path / "plain", task)
    steps = [read_step(tmp_path / name) for name in ("built", "plain")]
    built, plain = (list(leaves(step.data)) for step in steps)
    assert len(built) == len(plain) > 20
    for (item, one), (other_item, other) in zip(built, plain, strict=True):
        assert item == other_item and list(one) == list(other)
        assert_near(one, other)
        if (name := one.get("data_name")) is not None:
            first, second = ((step.folder / "dump_tensor_data" / name).read_bytes() for step in steps)
            assert first == second, name


#: Figures that are rounded, with what they are by (docs/format.md, "Statistics").
ROUNDED = ("Mean", "Norm", "Sketch")


def assert_near(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert {key: value for key, value in one.items() if key not in ROUNDED} == {
        key: value for key, value in other.items() if key not in ROUNDED
    }
    assert (one["Norm"] is None) == (other["Norm"] is None)
    if one["Norm"] is None:
        return
    largest = max(abs(one["Max"]), abs(one["Min"]))
    assert one["Mean"] == pytest.approx(other["Mean"], abs=4e-6 * largest)
    assert one["Norm"] == pytest.approx(other["Norm"], rel=4e-6)
    if "Sketch" in one:
        first, second = decode(one["Sketch"]), decode(other["Sketch"])
        assert first is not None and second is not None
        assert np.linalg.norm(first - second) <= 4e-6 * abs(one["Norm"])
