"""A short training in a compiled graph: ``kernel_training.py EPSILON SCALE STEPS [KIND]``."""

from __future__ import annotations

import sys
from typing import Any

import mindspore
import numpy as np
from mindspore import Tensor, nn


class Block(nn.Cell):
    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self.my_fc = nn.Dense(6, 6)
        self.norm = nn.LayerNorm((6,), epsilon=epsilon)
        self.act = nn.Tanh()

    def construct(self, x: Any) -> Any:
        return x + self.act(self.norm(self.my_fc(x)))


class Net(nn.Cell):
    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self.fc1 = nn.Dense(4, 6)
        self.blocks = nn.SequentialCell(Block(1e-5), Block(epsilon))
        self.head = nn.Dense(6, 2)

    def construct(self, x: Any) -> Any:
        return self.head(self.blocks(self.fc1(x)))


def make(epsilon: float = 1e-5, scale: float = 0.5) -> tuple[Net, Tensor, Tensor]:
    """The same weights and batch in every process."""
    random = np.random.default_rng(0)

    def some(*shape: int) -> Tensor:
        return Tensor((random.standard_normal(shape) * scale).astype(np.float32))

    net = Net(epsilon)
    for parameter in net.get_parameters():
        parameter.set_data(some(*parameter.shape))
    return net, some(3, 4), some(3, 2)


def train(net: Net, x: Tensor, y: Tensor, steps: int = 1) -> None:
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
    step.set_train()
    for _ in range(steps):
        step(x, y)


def train_jitted(net: Net, x: Tensor, y: Tensor, steps: int) -> None:
    loss, optimizer = nn.MSELoss(), nn.Adam(net.trainable_params(), 0.1)

    def forward(x: Any, y: Any) -> Any:
        return loss(net(x), y)

    gradients = mindspore.value_and_grad(forward, None, net.trainable_params())

    @mindspore.jit
    def step(x: Any, y: Any) -> Any:
        value, found = gradients(x, y)
        optimizer(found)
        return value

    for _ in range(steps):
        step(x, y)


class Outer(nn.Cell):
    """A dynamic network with a compiled Cell in it."""

    def __init__(self, inner: Net) -> None:
        super().__init__()
        self.body = inner
        self.out = nn.Dense(2, 2)

    def construct(self, x: Any) -> Any:
        return self.out(self.body(x))


def run_inner(net: Net, x: Tensor) -> None:
    outer = Outer(net)
    net.construct = mindspore.jit(net.construct)
    mindspore.value_and_grad(lambda x: outer(x).sum(), None, outer.trainable_params())(x)


def add_narrow(x: Tensor) -> None:
    @mindspore.jit
    def add(x: Any) -> Any:
        return x.astype(mindspore.bfloat16) + x.astype(mindspore.bfloat16)

    add(x)


def main(epsilon: str, scale: str, steps: str, kind: str = "graph") -> None:
    net, x, y = make(float(epsilon), float(scale))
    if kind == "bfloat16":
        add_narrow(x)
    elif kind == "inner":
        run_inner(net, x)
    elif kind == "jit":
        train_jitted(net, x, y, int(steps))
    else:
        mindspore.set_context(mode=mindspore.GRAPH_MODE)
        train(net, x, y, int(steps))
    if kind == "forward":
        net(x)


if __name__ == "__main__":
    main(*sys.argv[1:])
