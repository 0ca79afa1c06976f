"""A compiled training step on two ranks, recorded: ``msrun … two_compiled_ranks.py DUMP_PATH``."""

from __future__ import annotations

import json
import sys
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, communication, nn, ops

from msprobe_ms.mindspore import PrecisionDebugger


class Summed(nn.Cell):
    """Sums over the ranks what a layer computes."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(3, 2, weight_init="ones", has_bias=False)
        self.reduce = ops.AllReduce()

    def construct(self, x: Tensor) -> Tensor:
        return self.reduce(self.fc(x))


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.summed = Summed()
        self.head = nn.Dense(2, 2, weight_init="ones")

    def construct(self, x: Tensor) -> Tensor:
        return self.head(self.summed(x)).sum()


def main(dump_path: str) -> None:
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    communication.init()
    rank = communication.get_rank()
    net = Net()
    gradient: Any = ms.value_and_grad(net, None, net.trainable_params())
    x = Tensor(np.full((4, 3), rank + 1, np.float32))

    def step() -> list[Any]:
        value, gradients = gradient(x)
        return [value.asnumpy().tolist(), *(each.asnumpy().tolist() for each in gradients)]

    plain = step()
    debugger = PrecisionDebugger(dump_path=dump_path, level="L0", task="tensor")
    debugger.start(net)
    recorded = step()
    debugger.stop()
    debugger.step()
    print(json.dumps({"rank": rank, "same": recorded == plain == step()}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
