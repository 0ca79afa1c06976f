"""The smallest net that is worth recording, in MindSpore."""

from __future__ import annotations

import mindspore
import numpy as np
from mindspore import Tensor, nn


class Small(nn.Cell):
    """A layer and an activation."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(2, 3)
        self.act = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        return self.act(self.fc(x) * 2)


#: What it is given.
X = Tensor(np.array([[0.5, -1]], np.float32))


def small() -> Small:
    """Make the net with all weights 0.5."""
    net = Small()
    for parameter in net.get_parameters():
        parameter.set_data(Tensor(np.full(parameter.shape, 0.5, np.float32)))
    return net


def gradients(net: nn.Cell) -> list[bytes]:
    """Train a step on ``X``: bytes of the result and of every gradient."""
    value, found = mindspore.value_and_grad(lambda: net(X).sum(), None, net.trainable_params())()
    return [value.asnumpy().tobytes(), *(gradient.asnumpy().tobytes() for gradient in found)]
