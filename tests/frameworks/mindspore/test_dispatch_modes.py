"""Users' modes that are told of operators see those of the training, and none of this package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore import Tensor, mint, nn, ops
from recording import read_step, recording

pytestmark = pytest.mark.skipif(not hasattr(mindspore, "MsDispatchMode"), reason="from MindSpore 2.10 on")


class Net(nn.Cell):
    """Views, sums of gradients, writing in place."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.norm, self.head = nn.Dense(4, 4), nn.LayerNorm((4,)), nn.Dense(4, 2)

    def construct(self, x: Tensor) -> Tensor:
        y = ops.relu(self.norm(self.fc(x)))
        y = mint.add(y, y) * 2 + 1
        first, second = ops.split(y, 2, -1)
        y = ops.cat([second, first], -1)
        y = y + y
        y[0] = 1
        return self.head(y.transpose(0, 1).transpose(0, 1))


VALUES = np.arange(12, dtype=np.float32).reshape(3, 4) / 12


def train(net: nn.Cell) -> tuple[list[str], list[bytes]]:
    class Logged(mindspore.MsDispatchMode):
        def __ms_dispatch__(self, func: Any, args: Any, kwargs: Any = None) -> Any:
            seen.append(func.name)
            return func(*args)

    seen: list[str] = []
    x = Tensor(VALUES)
    with Logged():
        value, gradients = mindspore.value_and_grad(lambda: net(x).sum(), None, net.trainable_params())()
    return seen, [each.asnumpy().tobytes() for each in (value, *gradients)]


@pytest.mark.parametrize(
    ("level", "task"),
    [("L0", "statistics"), ("L1", "statistics"), ("mix", "statistics"), ("mix", "tensor"), ("L2", "statistics")],
)
def test_they_see_what_they_see_without_the_tool(ms: Any, dump_path: Path, level: str, task: str) -> None:
    net = Net()
    train(net)
    without = train(net)
    with recording(net, dump_path, level=level, task=task):
        assert train(net) == without
    assert read_step(dump_path).data and without[0]
    assert train(net) == without
