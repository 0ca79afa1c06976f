"""What gradients are computed of is recorded beside the calls of a step, and compared with the other side's."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
import torch
from compare_parts import compared, compared_steps
from mindspore import Tensor, nn, ops
from mindspore.ops.composite import base
from recording import read_step, step_folder, write_config

from msprobe_ms.comparison.run import Options
from msprobe_ms.mindspore import PrecisionDebugger
from msprobe_ms.pytorch import PrecisionDebugger as TorchDebugger

RANDOM = np.random.default_rng(3)
SHAPES = ((16, 6), (16,), (5, 16), (5,))
WEIGHTS = [(RANDOM.standard_normal(shape) * 0.5).astype(np.float32) for shape in SHAPES]
BATCH, LABELS = RANDOM.standard_normal((8, 6)).astype(np.float32), np.arange(8) % 5


def torch_net() -> torch.nn.Module:
    net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 5))
    with torch.no_grad():
        for parameter, weight in zip(net.parameters(), WEIGHTS, strict=True):
            parameter.copy_(torch.from_numpy(weight))
    return net


def mindspore_net() -> nn.Cell:
    net = nn.SequentialCell(nn.Dense(6, 16), nn.ReLU(), nn.Dense(16, 5))
    for parameter, weight in zip(net.trainable_params(), WEIGHTS, strict=True):
        parameter.set_data(Tensor(weight))
    return net


def torch_loss(net: torch.nn.Module, smoothing: float = 0.0) -> torch.Tensor:
    labels = torch.from_numpy(LABELS)
    return torch.nn.functional.cross_entropy(net(torch.from_numpy(BATCH)), labels, label_smoothing=smoothing)


def losses(dump_path: Path, step: int = 0) -> dict[str, Any]:
    return {name: value for name, value in read_step(dump_path, step).data.items() if name.endswith(".debug")}


def record_torch(dump_path: Path, run: Callable[[torch.nn.Module], Any], **keys: Any) -> Path:
    net, debugger = torch_net(), TorchDebugger(write_config(dump_path, **keys))
    debugger.start(net)
    run(net)
    debugger.stop()
    debugger.step()
    return step_folder(dump_path)


def record_mindspore(dump_path: Path, run: Callable[[nn.Cell], Any], **keys: Any) -> Path:
    net, debugger = mindspore_net(), PrecisionDebugger(write_config(dump_path, **keys))
    debugger.start(net)
    run(net)
    debugger.stop()
    debugger.step()
    return step_folder(dump_path)


def gradients(net: nn.Cell) -> Any:
    def forward(x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        output = net(x)
        return ops.cross_entropy(output, labels), output

    gradient = mindspore.value_and_grad(forward, None, net.trainable_params(), has_aux=True)
    return gradient(Tensor(BATCH), Tensor(LABELS, mindspore.int32))


def one_step(net: nn.Cell) -> Any:
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    with_loss = nn.WithLossCell(net, nn.CrossEntropyLoss())
    return nn.TrainOneStepCell(with_loss, optimizer)(Tensor(BATCH), Tensor(LABELS, mindspore.int32))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_wrong_loss_is_named_though_no_loss_function_is_recorded(ms: Any, tmp_path: Path, smoothing: float) -> None:
    target = record_mindspore(tmp_path / "target", gradients)
    golden = record_torch(tmp_path / "golden", lambda net: torch_loss(net, smoothing).backward())
    comparison = compared(target, golden, tmp_path / "report", Options(csv=True)).comparison
    assert comparison.verdict == ("divergent" if smoothing else "consistent")
    if smoothing:
        (origin,) = comparison.origins
        assert (origin.target, origin.golden) == ("loss.0.debug", "loss.0.debug")
        assert origin.reason.endswith("though the model's outputs agree: compare the loss functions")


def test_dumps_without_a_loss_compare_as_before(ms: Any, tmp_path: Path) -> None:
    target = record_mindspore(tmp_path / "target", gradients)
    golden = record_torch(tmp_path / "golden", lambda net: torch_loss(net).backward(), list=["Module"])
    outcome = compared(target, golden, tmp_path / "report", Options(csv=True))
    assert outcome.comparison.verdict == "consistent"
    (summary,) = (tmp_path / "report").glob("compare_summary*.json")
    content = json.loads(summary.read_text())
    assert (content["unmatched_target"], content["unmatched_golden"]) == (0, 0)


@pytest.mark.parametrize("run", [gradients, one_step])
def test_mindspore_records_it_once_whoever_computes_gradients(ms: Any, dump_path: Path, run: Any) -> None:
    genuine = base._pynative_forward_run
    record_mindspore(dump_path, run)
    assert base._pynative_forward_run is genuine
    expected = torch_loss(torch_net()).item()
    assert {name: leaf["Mean"] for name, leaf in losses(dump_path).items()} == {
        "loss.0.debug": pytest.approx(expected, rel=1e-5)
    }


def test_each_backward_of_a_step_has_its_own(dump_path: Path) -> None:
    genuine = torch.autograd.backward, torch.autograd.grad

    def accumulate(net: torch.nn.Module) -> None:
        for scale in (1.0, 0.5):
            (torch_loss(net) * scale).backward()
        (gradient,) = torch.autograd.grad(torch_loss(net).reshape(1, 1) * 2, [net[0].weight], create_graph=True)
        gradient.backward(torch.ones_like(gradient))  # no loss

    record_torch(dump_path, accumulate)
    assert (torch.autograd.backward, torch.autograd.grad) == genuine
    once = losses(dump_path)["loss.0.debug"]["Mean"]
    assert {name: leaf["Mean"] / once for name, leaf in losses(dump_path).items()} == {
        "loss.0.debug": 1.0, "loss.1.debug": 0.5, "loss.2.debug": 2.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"level": "L1"}, True),
        ({"level": "mix"}, True),
        ({"task": "structure"}, True),
        ({"list": ["Linear"]}, False),
        ({"list": ["loss"]}, True),
        ({"scope": ["Module.0.Linear.forward.0", "Module.1.ReLU.forward.0"]}, False),
        ({"scope": {"from": "Module.2.Linear.forward.0"}}, True),
        ({"data_mode": ["forward"]}, True),
        ({"data_mode": ["output"]}, True),
        ({"data_mode": ["input"]}, False),
        ({"data_mode": ["backward"]}, False),
        ({"step": [1]}, False),
        ({"rank": [1]}, False),
    ],
)
def test_it_is_selected_as_a_result_of_forward(dump_path: Path, keys: dict[str, Any], expected: bool) -> None:
    net, debugger = torch_net(), TorchDebugger(write_config(dump_path, **keys))
    debugger.start(net)
    torch_loss(net).backward()
    debugger.stop()
    debugger.step()
    assert dump_path.exists() == (not {"step", "rank"} & set(keys))
    assert not dump_path.exists() or set(losses(dump_path)) == ({"loss.0.debug"} if expected else set())
    if keys == {"task": "structure"}:
        assert losses(dump_path) == {"loss.0.debug": {}}


def test_a_step_in_which_nothing_else_was_recorded_is_said(
    dump_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("msprobe_ms"), "propagate", True)
    other, debugger = torch.nn.Sequential(torch.nn.Linear(2, 2)), TorchDebugger(write_config(dump_path))
    debugger.start(other)
    torch_loss(torch_net()).backward()
    debugger.stop()
    debugger.step()
    assert set(read_step(dump_path).data) == {"loss.0.debug"}
    assert "nothing but the loss was recorded: no module of Sequential was called" in caplog.text


def test_the_step_in_which_losses_first_differ_is_named(tmp_path: Path) -> None:
    def train(folder: Path, changes: int) -> Path:
        net, debugger = torch_net(), TorchDebugger(write_config(folder))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(4):
            debugger.start(net)
            optimizer.zero_grad()
            torch_loss(net, 0.2 if step >= changes else 0.0).backward()
            optimizer.step()
            debugger.stop()
            debugger.step()
        return folder

    results = compared_steps(train(tmp_path / "target", 2), train(tmp_path / "golden", 4))
    assert [found.verdict for found in results.found][:3] == ["consistent", "consistent", "divergent"]
    gap = results.total.first_loss
    assert gap is not None and gap.step == 2 and gap.target > gap.golden
