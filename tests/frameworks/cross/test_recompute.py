"""Calls that are made again in backward, on other threads, or end in an exception."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.checkpoint import checkpoint

import msprobe_ms
import msprobe_ms.pytorch
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.pytorch import PrecisionDebugger


def recomputed(dump: Dump) -> set[str]:
    return {name for name, entry in dump.entries.items() if entry.recomputed}


def forwards(dump: Dump) -> list[str]:
    return [name for name in dump.entries if ".forward" in name]


class Exp(torch.autograd.Function):
    """A function with its own backward, which computes with APIs that are recorded but recompute nothing."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return torch.exp(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return torch.mul(gradient, torch.exp(ctx.saved_tensors[0]))


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_of_pytorch_is_marked(dump_path: Path, reentrant: bool) -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc1, self.fc2 = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> Any:
            return Exp.apply(checkpoint(lambda x: torch.relu(self.fc2(x)), self.fc1(x), use_reentrant=reentrant)).sum()

    net = Net()
    with msprobe_ms.pytorch.record(net, dump_path=dump_path) as recording:
        net(torch.ones(2, 3)).backward()
    dump = read_dump(recording.path)
    # Without reentering, PyTorch stops as soon as it has what backward needs: in the middle of the last call.
    last = {"Torch.relu.1.forward"} if reentrant else set()
    assert recomputed(dump) == {"Module.fc2.Linear.forward.1", "Functional.linear.2.forward"} | last
    assert {"Module.fc2.Linear.forward.0", "Module.fc1.Linear.forward.0", "Torch.mul.0.forward"} <= set(forwards(dump))
    # Gradients flow through the graph of the second call, or, without reentering, through that of the first.
    assert f"Module.fc2.Linear.backward.{int(reentrant)}" in dump.entries


@pytest.mark.parametrize("reentrant", [True, False])
def test_recompute_of_mindspore_is_marked(ms: Any, dump_path: Path, reentrant: bool) -> None:
    class Net(ms.nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.first = ms.nn.Dense(3, 3)
            self.block = ms.nn.SequentialCell(ms.nn.Dense(3, 3), ms.nn.ReLU())
            self.block.recompute(use_reentrant=reentrant)

        def construct(self, x: Any) -> Any:
            return self.block(self.first(x)).sum()

    net = Net()
    with msprobe_ms.record(net, level="L0", dump_path=dump_path) as recording:
        ms.value_and_grad(net, None, net.trainable_params())(ms.Tensor(np.ones((2, 3), np.float32)))
    dump = read_dump(recording.path)
    assert "Cell.block.0.Dense.forward.1" in recomputed(dump)
    assert all(name.startswith("Cell.block.") and name.endswith(".forward.1") for name in recomputed(dump))
    assert {"Cell.first.Dense.forward.0", "Cell.block.0.Dense.forward.0"} <= set(forwards(dump)) - recomputed(dump)


def test_calls_on_several_threads_keep_their_own_parents(dump_path: Path) -> None:
    """Four threads are in a module of their own at the same time; what each calls belongs to its own module."""
    inside = threading.Barrier(4)

    class Branch(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = torch.nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> Any:
            inside.wait(30)
            x = torch.relu(self.fc(x))
            inside.wait(30)
            return x

    net = torch.nn.ModuleList(Branch() for _ in range(4))
    with msprobe_ms.pytorch.record(net, task="tensor", dump_path=dump_path) as dump:
        threads = [
            threading.Thread(target=branch, args=(torch.full((1, 2), float(number)),))
            for number, branch in enumerate(net)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for number in range(4):
        linear = dump[f"Module.{number}.fc.Linear.forward.0"]
        assert linear.parent == f"Module.{number}.Branch.forward.0"
        assert linear["input.0"].numpy().tolist() == [[number, number]]
    relus = [dump[f"Torch.relu.{index}.forward"] for index in range(4)]
    assert {relu.parent for relu in relus} == {f"Module.{number}.Branch.forward.0" for number in range(4)}
    for relu in relus:
        branch = str(relu.parent).split(".")[1]
        expected = dump[f"Module.{branch}.fc.Linear.forward.0"]["output.0"].numpy()
        np.testing.assert_array_equal(relu["input.0"].numpy(), expected)
    assert not (dump.path / "dump_error_info.log").exists()


def test_after_an_exception_the_next_step_is_whole(dump_path: Path) -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.outer = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.0), torch.nn.Linear(2, 2))
            self.breaks = True

        def forward(self, x: torch.Tensor) -> Any:
            return self.outer(x)

    net = Net()
    failure = KeyError("mine")

    def fail(*_: Any) -> None:
        raise failure

    hook = net.outer[1].register_forward_pre_hook(fail)
    debugger = PrecisionDebugger(level="mix", dump_path=dump_path)
    for step in range(2):
        debugger.start(net)
        if step == 0:
            with pytest.raises(KeyError) as caught:
                net(torch.ones(1, 2))
            assert caught.value is failure
            hook.remove()
        else:
            net(torch.ones(1, 2)).sum().backward()
        debugger.stop()
        debugger.step()
    broken, whole = (read_dump(next((dump_path / f"step{step}").iterdir())) for step in (0, 1))
    assert [name for name in broken.entries if name.startswith("Module.")] == ["Module.outer.0.Linear.forward.0"]
    outer = "Module.outer.Sequential.forward.0"
    names = ["Module.outer.0.Linear.forward.0", "Module.outer.1.Dropout.forward.0", "Module.outer.2.Linear.forward.0"]
    assert [name for name in forwards(whole) if name.startswith("Module.")] == [*names, outer]
    assert [whole.entries[name].parent for name in names] == [outer] * 3
    assert "Module.outer.2.Linear.backward.0" in whole.entries
