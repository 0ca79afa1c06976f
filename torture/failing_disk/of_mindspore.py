"""Trainings in MindSpore: dynamic, compiled, and a compiled part of a dynamic net."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, mint, nn, ops

from msprobe_ms.mindspore import PrecisionDebugger
from torture.failing_disk.trainings import Result, Save, Training

#: The infinity makes all of it entries of task overflow_check.
_X = Tensor(np.array([[0.5, -1], [2, np.inf]], np.float32))


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(2, 2, weight_init="ones")
        self.act = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        return self.act(self.fc(x) * 2)


class Compiled(Net):
    @ms.jit
    def construct(self, x: Tensor) -> Tensor:
        return self.act(self.fc(x) * 2)


class Mixed(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.block = Compiled()
        self.head = nn.Dense(2, 2, weight_init="ones")

    def construct(self, x: Tensor) -> Tensor:
        return self.head(self.block(x))


def _training(net: nn.Cell) -> Training:
    weights = net.trainable_params()

    def train(save: Save) -> Result:
        def forward(x: Tensor) -> Tensor:
            save(x, "x")
            y = net(x)
            save({"y": y, "more": [1.5, "text"]}, "y")
            return y.sum()

        return _bytes(ms.value_and_grad(forward, None, weights)(_X))

    return Training(net, lambda: [cell for _, cell in net.cells_and_names()], train, PrecisionDebugger, _SPACES)


def _bytes(result: Any) -> Result:
    value, gradients = result
    return [value.asnumpy().tobytes(), *(gradient.asnumpy().tobytes() for gradient in gradients)]


_SPACES = (ops, mint, nn.Cell, Tensor, ops.Primitive)


def dynamic() -> Training:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.runtime.launch_blocking()
    return _training(Net())


def mixed() -> Training:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.runtime.launch_blocking()
    return _training(Mixed())


def compiled() -> Training:
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Net()

    def forward(x: Tensor) -> Tensor:
        return net(x).sum()

    step: Any = ms.value_and_grad(forward, None, net.trainable_params())
    return _training(net)._replace(train=lambda save: _bytes(step(_X)))


def compiled_kernels() -> Training:
    return compiled()
