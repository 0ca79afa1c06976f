"""``forward_backward_dump_end`` and ``module_dump``: what of a step is recorded, as a script marks it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
import torch
from mindspore import nn, ops
from recording import read_step, write_config

import msprobe_ms.mindspore
import msprobe_ms.pytorch
from msprobe_ms.support.errors import UsageError


def entries(dump_path: Path) -> list[str]:
    return [name for name in read_step(dump_path).data if not name.startswith("loss.")]


@mindspore.jit
def compiled(a: mindspore.Tensor) -> mindspore.Tensor:
    return ops.exp(a) * 2


def test_compiled_functions_are_recorded_after_forward_backward_dump_end(ms: Any, dump_path: Path) -> None:
    x = ms.Tensor(np.ones((2, 2), np.float32))
    debugger = msprobe_ms.mindspore.PrecisionDebugger(write_config(dump_path, level="L1"))
    debugger.start()
    compiled(ops.relu(x))
    debugger.forward_backward_dump_end()
    compiled(ops.tanh(x))
    debugger.stop()
    compiled(x)
    debugger.start()
    ops.sin(x)
    debugger.stop()
    debugger.step()
    recorded = [name for name in read_step(dump_path).data if (".forward" in name and "Jit" in name) or "Fun" in name]
    assert recorded == [
        "Functional.relu.0.forward", "Jit.compiled.0.forward", "Jit.compiled.1.forward", "Functional.sin.0.forward",
    ]  # fmt: skip


def test_backward_of_what_was_recorded_still_comes(dump_path: Path) -> None:
    debugger, x = msprobe_ms.pytorch.PrecisionDebugger(write_config(dump_path, level="L1")), torch.ones(2)
    x.requires_grad_()
    debugger.start()
    loss = torch.relu(x).sum()
    debugger.forward_backward_dump_end()
    torch.exp(x)
    loss.backward()
    debugger.stop()
    debugger.step()
    assert entries(dump_path) == [
        "Torch.relu.0.forward", "Tensor.sum.0.forward", "Tensor.sum.0.backward", "Torch.relu.0.backward",
    ]  # fmt: skip


def test_at_other_levels_it_stops_and_says_so(dump_path: Path, warnings: list[str]) -> None:
    debugger, net = msprobe_ms.pytorch.PrecisionDebugger(write_config(dump_path, level="L0")), torch.nn.Linear(2, 2)
    model = torch.nn.Sequential(net)
    debugger.start(model)
    model(torch.ones(2))
    debugger.forward_backward_dump_end()
    model(torch.ones(2))
    debugger.step()
    assert "Module.0.Linear.forward.1" not in read_step(dump_path).data
    said = "forward_backward_dump_end: is for level L1; at level L0 it stops all recording, as stop() does"
    assert warnings == [said]


def test_a_module_that_the_script_names_is_recorded_alone_in_pytorch(dump_path: Path) -> None:
    debugger, layer = msprobe_ms.pytorch.PrecisionDebugger(write_config(dump_path, level="L1")), torch.nn.Linear(2, 2)
    x, before = torch.ones(1, 2), dict(layer.__dict__["_forward_hooks"])
    debugger.start()
    debugger.module_dump(layer, "mine")
    (layer(x).sum() + layer(x).relu().sum()).backward()
    debugger.module_dump_end()
    layer(x)
    debugger.stop()
    debugger.step()
    assert entries(dump_path) == [
        "Module.mine.Linear.forward.0", "Module.mine.Linear.forward.1", "Module.mine.Linear.backward.1",
        "Module.mine.Linear.backward.0", "Module.mine.Linear.parameters_grad.0", "Functional.linear.0.forward",
    ]  # fmt: skip
    assert layer._forward_hooks == before and not layer._forward_pre_hooks


def test_a_cell_that_the_script_names_is_recorded_alone_in_mindspore(ms: Any, dump_path: Path) -> None:
    debugger, layer = msprobe_ms.mindspore.PrecisionDebugger(write_config(dump_path, level="L1")), nn.Dense(2, 2)
    x = ms.Tensor(np.ones((1, 2), np.float32))
    debugger.start()
    debugger.module_dump(layer, "mine")
    mindspore.value_and_grad(lambda a: ops.relu(layer(a)).sum(), None, layer.trainable_params())(x)
    debugger.stop()
    layer(x)
    debugger.step()
    assert entries(dump_path) == [
        "Cell.mine.Dense.forward.0", "Cell.mine.Dense.backward.0", "Cell.mine.Dense.parameters_grad.0",
    ]  # fmt: skip


def test_what_cannot_be_named(dump_path: Path, warnings: list[str]) -> None:
    debugger, layer = msprobe_ms.pytorch.PrecisionDebugger(write_config(dump_path, level="L0")), torch.nn.Linear(2, 2)
    with pytest.raises(UsageError, match=r"^module_dump: module is a str; give a torch.nn.Module$"):
        debugger.module_dump("fc1", layer)
    with pytest.raises(UsageError, match=r'^module_dump: module_name 3 is not accepted; give a text, such as "fc1"$'):
        debugger.module_dump(layer, 3)
    debugger.module_dump(layer, "fc1")
    debugger.module_dump_end()
    assert warnings == ["module_dump: level L0 does not record single modules, level L1 does"]
