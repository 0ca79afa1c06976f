"""A MindSpore net of one layer with the same weights on every call, its batch, and its gradients."""

from __future__ import annotations

import mindspore
import numpy as np
from mindspore import Tensor, nn


class Small(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(2, 3)
        self.act = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        return self.act(self.fc(x) * 2)


X = Tensor(np.array([[0.5, -1]], np.float32))


def small() -> Small:
    net = Small()
    for parameter in net.get_parameters():
        parameter.set_data(Tensor(np.full(parameter.shape, 0.5, np.float32)))
    return net


def gradients(net: nn.Cell) -> list[bytes]:
    value, found = mindspore.value_and_grad(lambda: net(X).sum(), None, net.trainable_params())()
    return [value.asnumpy().tobytes(), *(gradient.asnumpy().tobytes() for gradient in found)]
