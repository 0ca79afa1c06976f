"""What a recorded step leaves is freed at once: nothing waits for Python's search for cycles, which a script may have
switched off, and which takes longer the more there is."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore
import nets_dynamic
import nets_mindspore
import numpy as np
import pytest
import torch
from mindspore import Tensor, nn
from recording import write_config

from msprobe_ms import PrecisionDebugger
from msprobe_ms.pytorch import PrecisionDebugger as TorchDebugger
from msprobe_ms.recording.dynamic_step import DynamicStep


def left_by(step: Callable[[], None]) -> Counter[str]:
    """What of this package a step leaves for the search, by kind; the first steps make what later ones use again."""
    step(), step()
    gc.collect()
    was_on = gc.isenabled()
    gc.disable()
    try:
        step()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        return Counter(name for each in gc.garbage if "msprobe_ms" in (name := _named(each)))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        if was_on:
            gc.enable()


def _named(value: Any) -> str:
    """Module and name of a function, else those of the value's type."""
    kind = type(value)
    named = value if kind.__name__ in ("function", "method") else kind
    return f"{named.__module__}.{named.__qualname__}"


def train_mindspore(net: nn.Cell, x: Tensor) -> None:
    optimizer = nn.SGD(net.trainable_params(), 0.01)
    optimizer(mindspore.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())(x)[1])


WAYS: dict[str, dict[str, Any]] = {
    "L0": {"level": "L0"},
    "L1": {"level": "L1"},
    "mix": {"level": "mix"},
    "tensors": {"level": "mix", "task": "tensor"},
    "tensors in a thread": {"level": "L0", "task": "tensor", "async_dump": True},
    "checksums": {"level": "mix", "summary_mode": "md5"},
    "structure": {"level": "mix", "task": "structure"},
    "overflows": {"level": "L1", "task": "overflow_check"},
    "updates": {"level": "L0", "optimizer": True},
}


@pytest.mark.parametrize("keys", [*WAYS.values(), {"level": "L2"}], ids=[*WAYS, "L2"])
@pytest.mark.parametrize("net_of", [nets_mindspore.make, None], ids=["lenet", "jitted"])
def test_mindspore(ms: Any, dump_path: Path, keys: dict[str, Any], net_of: Any) -> None:
    if net_of is None:
        net, x = nets_dynamic.Jitted(ast=True, captured=False), Tensor(np.ones((2, 8), np.float32))
    else:
        net, x, _ = net_of("lenet")
    debugger = PrecisionDebugger(write_config(dump_path, **keys))

    def step() -> None:
        debugger.start(net)
        train_mindspore(net, x)
        debugger.stop()
        debugger.step()

    assert left_by(step) == {}


@pytest.mark.parametrize("keys", WAYS.values(), ids=WAYS)
def test_pytorch(dump_path: Path, keys: dict[str, Any]) -> None:
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), layer, torch.nn.Linear(16, 4))
    optimizer, x = torch.optim.SGD(net.parameters(), 0.01), torch.ones(2, 3, 8)
    debugger = TorchDebugger(write_config(dump_path, **keys))

    def step() -> None:
        debugger.start(net)
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()
        debugger.stop()
        debugger.step()

    assert left_by(step) == {}


def test_a_saved_value(dump_path: Path) -> None:
    debugger = TorchDebugger(write_config(dump_path, level="debug"))

    def step() -> None:
        x = torch.ones(3, requires_grad=True)
        y = x * 2
        debugger.save(y, "y", save_backward=True)
        y.sum().backward()
        debugger.step()

    assert left_by(step) == {}


def test_calls_of_a_range_of_tokens(dump_path: Path) -> None:
    net, x = torch.nn.Sequential(torch.nn.Linear(4, 4)), torch.ones(2, 4)
    debugger = TorchDebugger(write_config(dump_path, level="L0"))

    def step() -> None:
        debugger.start(net, token_range=[1, 2])
        for _ in range(4):
            net(x)
        debugger.stop()
        debugger.step()

    assert left_by(step) == {}


@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_the_search_is_as_it_was(dump_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_on: bool, fails: bool) -> None:
    """After each call, whether the script has it on or off, and where something of ours fails."""
    net, debugger = torch.nn.Sequential(torch.nn.Linear(4, 4)), TorchDebugger(write_config(dump_path, level="L1"))

    def fail(*_: Any) -> None:
        raise RuntimeError("of ours")

    found, was_on = [], gc.isenabled()
    (gc.enable if is_on else gc.disable)()
    try:
        if fails:
            for name in ("start", "stop", "finish"):
                monkeypatch.setattr(DynamicStep, name, fail)
        for call in (lambda: debugger.start(net), lambda: net(torch.ones(2, 4)), debugger.stop, debugger.step):
            call()
            found.append(gc.isenabled())
    finally:
        (gc.enable if was_on else gc.disable)()
    assert found == [is_on] * 4
