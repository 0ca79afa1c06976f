"""A short training in a compiled graph: ``kernel_training.py EPSILON SCALE STEPS [forward]``."""

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


def main(epsilon: str, scale: str, steps: str, *forward: str) -> None:
    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    random = np.random.default_rng(0)

    def some(*shape: int) -> Tensor:
        return Tensor((random.standard_normal(shape) * float(scale)).astype(np.float32))

    net = Net(float(epsilon))
    for parameter in net.get_parameters():
        parameter.set_data(some(*parameter.shape))
    x, y = some(3, 4), some(3, 2)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
    step.set_train()
    for _ in range(int(steps)):
        step(x, y)
    if forward:
        net(x)


if __name__ == "__main__":
    main(*sys.argv[1:])
