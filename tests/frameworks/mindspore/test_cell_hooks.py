"""Hooks of the user's on Cells, beside ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from recording import read_step, write_config

from msprobe_ms.frameworks.mindspore import cell_hooks
from msprobe_ms.mindspore import PrecisionDebugger

X = Tensor(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(4, 4, weight_init="ones")

    def construct(self, x: Tensor) -> Tensor:
        return ops.relu(self.fc(x))


class Once:
    """Hooks that take themselves off, or whose first call does something else."""

    def __init__(self, net: Net, action: Any = None) -> None:
        self._action = action or self.remove
        self.told: list[str] = []
        self._handles = [net.fc.register_forward_pre_hook(self.before), net.fc.register_forward_hook(self.after)]

    def remove(self) -> None:
        self._handles[len(self.told) - 1].remove()

    def before(self, cell: nn.Cell, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        self.told.append("before")
        self._action()
        return (inputs[0] + 1,)

    def after(self, cell: nn.Cell, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        self.told.append("after")
        self._action()
        return output * 2


def test_hooks_that_take_themselves_off_run_as_without_us(ms: Any, dump_path: Path) -> None:
    """MindSpore runs them from the very table that they take themselves from."""
    net = Net()
    Once(net)
    expected = [net(X).asnumpy().tolist() for _ in range(2)]
    once = Once(net)
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    debugger.start(net)
    found = [net(X).asnumpy().tolist() for _ in range(2)]
    debugger.stop()
    debugger.step()
    assert found == expected and found[0] != found[1] and once.told == ["before", "after"]
    first, second = (read_step(dump_path).data[f"Cell.fc.Dense.forward.{n}"] for n in range(2))
    # What is recorded is what other hooks have made of it.
    assert first["input_args"][0]["Max"] == second["input_args"][0]["Max"] + 1 == 2
    assert first["output"][0]["Max"] == np.max(net.fc(X + 1).asnumpy()) * 2
    assert not (net.fc._forward_pre_hook or net.fc._forward_hook)


def test_recording_may_end_in_a_hook(ms: Any, dump_path: Path) -> None:
    net = Net()
    expected = (net.fc(X + 1) * 2).asnumpy().tolist()
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    Once(net, debugger.stop)
    debugger.start(net)
    assert net.fc(X).asnumpy().tolist() == expected
    debugger.step()
    assert len(net.fc._forward_hook) == 1


def test_a_hook_that_raises_ends_its_call_alone(ms: Any, dump_path: Path) -> None:
    net = Net()
    handle = net.fc.register_forward_hook(lambda *_: 1 / 0)
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    debugger.start(net)
    with pytest.raises(ZeroDivisionError):
        net(X)
    handle.remove()
    net(X)
    debugger.stop()
    debugger.step()
    assert sorted(read_step(dump_path).data) == ["Cell.fc.Dense.forward.1"]


def test_a_hook_may_call_its_own_cell(ms: Any, dump_path: Path) -> None:
    net, calls = Net(), list[Any]()

    def again(cell: nn.Cell, *_: Any) -> None:
        calls.append(cell)
        if len(calls) == 1:
            cell(X)

    handle = net.fc.register_forward_hook(again)
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    debugger.start(net)
    net.fc(X)
    debugger.stop()
    debugger.step()
    handle.remove()
    assert len(calls) == 2
    assert sorted(read_step(dump_path).data) == ["Cell.fc.Dense.forward.0", "Cell.fc.Dense.forward.1"]


def test_a_call_without_memory_waits_for_none_that_an_interrupt_left(
    ms: Any, dump_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is it recorded as it was before the hooks that come after ours; that is said."""

    def no_memory(cell: nn.Cell) -> NoReturn:
        raise MemoryError

    net = Net()
    debugger = PrecisionDebugger(write_config(dump_path, level="L0"))
    debugger.start(net)
    monkeypatch.setattr(cell_hooks._running, "innermost", cell_hooks._Run(net.fc))
    monkeypatch.setattr(cell_hooks, "_Run", no_memory)
    net(X)
    debugger.stop()
    debugger.step()
    assert "incomplete" in json.loads((read_step(dump_path, troubles=True).folder / "dump.json").read_text())
