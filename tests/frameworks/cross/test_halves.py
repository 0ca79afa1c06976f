"""A network of which ``ms.jit`` compiles all, a block, or a function, beside the same in PyTorch, step by step."""

from __future__ import annotations

from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
import torch
from compare_parts import compared_steps
from mindspore import nn
from thorough import thorough

import msprobe_ms.mindspore
import msprobe_ms.pytorch
from msprobe_ms.comparison.pairing.coverage import unmatched_modules
from msprobe_ms.comparison.terms import Verdict

_SIZE, _STEPS = 16, 2
_RANDOM = np.random.default_rng(7)
_X, _Y = (_RANDOM.normal(size=(_STEPS, 8, _SIZE)).astype(np.float32) for _ in range(2))
_WEIGHTS = {
    f"{name}.{layer}.weight": (_RANDOM.normal(size=(_SIZE, _SIZE)) * 0.3).astype(np.float32)
    for name in ("first", "second")
    for layer in ("fc", "out")
}


class Block(nn.Cell):
    def __init__(self, eps: float) -> None:
        super().__init__()
        self.norm, self.fc = nn.LayerNorm((_SIZE,), epsilon=eps), nn.Dense(_SIZE, _SIZE)
        self.act, self.out = nn.ReLU(), nn.Dense(_SIZE, _SIZE)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return x + self.out(self.act(self.fc(self.norm(x))))


class CompiledBlock(Block):
    @ms.jit
    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return x + self.out(self.act(self.fc(self.norm(x))))


class Net(nn.Cell):
    block = Block

    def __init__(self, eps: dict[str, float]) -> None:
        super().__init__()
        self.first, self.second = Block(eps.get("first", 1e-5)), self.block(eps.get("second", 1e-5))
        self.norm = nn.LayerNorm((_SIZE,), epsilon=1e-5)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.norm(self.second(self.norm(self.first(x))))


class Whole(Net):
    @ms.jit
    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.norm(self.second(self.norm(self.first(x))))


class OfBlock(Net):
    block = CompiledBlock


class OfFunction(Net):
    """Its norm runs in the graph, and again outside of it."""

    @ms.jit
    def part(self, x: ms.Tensor) -> ms.Tensor:
        return self.second(self.norm(x))

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.norm(self.part(self.first(x)))


def dump_target(net: nn.Cell, level: str, root: Path) -> Path:
    for name, parameter in net.parameters_and_names():
        if name in _WEIGHTS:
            parameter.set_data(ms.Tensor(_WEIGHTS[name]))
        elif name.endswith("bias"):
            parameter.set_data(ms.Tensor(np.zeros(_SIZE, np.float32)))
    step = ms.value_and_grad(lambda x, y: ((net(x) - y) ** 2).mean(), None, net.trainable_params())
    optimizer = nn.SGD(net.trainable_params(), 0.05)
    debugger = msprobe_ms.mindspore.PrecisionDebugger(level=level, dump_path=str(root), step=[*range(_STEPS)])
    for x, y in zip(_X, _Y, strict=True):
        debugger.start(net)
        _, gradients = step(ms.Tensor(x), ms.Tensor(y))
        debugger.stop()
        optimizer(gradients)
        debugger.step()
    return root


class TorchBlock(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.fc = torch.nn.LayerNorm(_SIZE), torch.nn.Linear(_SIZE, _SIZE)
        self.act, self.out = torch.nn.ReLU(), torch.nn.Linear(_SIZE, _SIZE)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.out(self.act(self.fc(self.norm(x))))


class TorchNet(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.norm = TorchBlock(), TorchBlock(), torch.nn.LayerNorm(_SIZE)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.second(self.norm(self.first(x))))


def dump_golden(level: str, root: Path) -> Path:
    net = TorchNet()
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if name in _WEIGHTS:
                parameter.copy_(torch.tensor(_WEIGHTS[name]))
            elif name.endswith("bias"):
                parameter.zero_()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    debugger = msprobe_ms.pytorch.PrecisionDebugger(level=level, dump_path=str(root), step=[*range(_STEPS)])
    for x, y in zip(_X, _Y, strict=True):
        debugger.start(net)
        optimizer.zero_grad()
        ((net(torch.tensor(x)) - torch.tensor(y)) ** 2).mean().backward()
        debugger.stop()
        optimizer.step()
        debugger.step()
    return root


@pytest.mark.parametrize(
    ("net_class", "level"),
    [(Whole, "mix"), (OfBlock, "mix"), (OfFunction, "L0"), thorough((Whole, "L0")), thorough((OfFunction, "mix"))],
)
def test_a_healthy_network_that_is_compiled_in_part(net_class: type[Net], level: str, tmp_path: Path) -> None:
    target = dump_target(net_class({}), level, tmp_path / "target")
    assert sorted(each.name for each in target.iterdir()) == ["graph", "pynative"]
    result = compared_steps(target, dump_golden(level, tmp_path / "golden"))
    assert [each.verdict for each in result.found] == [Verdict.CONSISTENT] * _STEPS
    assert list(result) == [(0, -1), (1, -1)]
    for step in range(_STEPS):
        assert not any(unmatched_modules(result[step, -1].comparison.pairs))


@pytest.mark.parametrize(
    ("net_class", "level", "faulty", "named"),
    [
        (OfBlock, "mix", "second", "Cell.second.norm.LayerNorm.forward.0"),
        (OfFunction, "L0", "second", "Cell.second.norm.LayerNorm.forward.0"),
        thorough((OfBlock, "L0", "first", "Cell.first.norm.LayerNorm.forward.0")),
        thorough((Whole, "mix", "first", "Cell.first.norm.LayerNorm.forward.0")),
    ],
)
def test_an_error_in_the_graph_or_outside_is_named_once(
    net_class: type[Net], level: str, faulty: str, named: str, tmp_path: Path
) -> None:
    target = dump_target(net_class({faulty: 1e-2}), level, tmp_path / "target")
    result = compared_steps(target, dump_golden(level, tmp_path / "golden"))
    assert [origin.target for origin in result[0, -1].origins] == [f"{named}.output.0"]
    assert [each.verdict for each in result.found] == [Verdict.DIVERGENT] * _STEPS
