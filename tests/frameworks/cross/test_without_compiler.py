"""Tensor files are the same to the byte, whether an install had a compiler or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore
import pytest
import torch
from mindspore import Tensor
from recording import leaves, read_step, recording, write_config

from msprobe_ms.arrays import one_pass
from msprobe_ms.pytorch import PrecisionDebugger

pytestmark = pytest.mark.skipif(not one_pass.is_built(), reason="the extension is not built")


def record_torch(folder: Path) -> None:
    debugger = PrecisionDebugger(write_config(folder, level="L1", task="tensor"))
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


def record_mindspore(folder: Path) -> None:
    mindspore.set_seed(0)
    with recording(None, folder, level="L1", task="tensor"):
        x = mindspore.ops.arange(0, 9600).reshape(3, 64, 50)
        for dtype in (mindspore.float32, mindspore.bfloat16, mindspore.float16, mindspore.int8, mindspore.bool_):
            y = x.astype(dtype)
            mindspore.ops.reshape(y.swapaxes(1, 2), (-1,))
            mindspore.ops.reshape(y[:, 1::2], (-1,))
        mindspore.ops.relu(Tensor(2.0))


@pytest.mark.parametrize("record", [record_torch, record_mindspore])
def test_tensor_files_are_the_same(ms: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: Any) -> None:
    record(tmp_path / "built")
    monkeypatch.setattr(one_pass, "_figures", None)
    record(tmp_path / "plain")
    steps = [read_step(tmp_path / name) for name in ("built", "plain")]
    files = [[(item, leaf.get("data_name")) for item, leaf in leaves(step.data)] for step in steps]
    assert files[0] == files[1] and len(files[0]) > 20
    for _, name in files[0]:
        if name is not None:
            one, other = ((step.folder / "dump_tensor_data" / name).read_bytes() for step in steps)
            assert one == other, name
