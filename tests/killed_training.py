"""A recorded training that tells on stdout every call that has returned; it runs until it is killed.

``python killed_training.py DUMP_PATH TASK LEVEL``. Each line is a finished call, ``{step} {entry}``; a line
``{step} backward`` says that the whole backward of a step has returned.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from msprobe_ms.mindspore import PrecisionDebugger


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.CellList([nn.Dense(16, 16) for _ in range(3)])
        self.act = nn.ReLU()
        self.calls: Counter[str] = Counter()
        self.step = 0
        self.apis = False

    def finished(self, base: str, is_module: bool) -> None:
        number = self.calls[base]
        self.calls[base] += 1
        entry = f"{base}.forward.{number}" if is_module else f"{base}.{number}.forward"
        if is_module or self.apis:
            os.write(1, f"{self.step} {entry}\n".encode())

    def construct(self, x: Tensor) -> Tensor:
        for number, layer in enumerate(self.layers):
            x = layer(x)
            self.finished(f"Cell.layers.{number}.Dense", True)
            x = self.act(x)
            self.finished("Cell.act.ReLU", True)
            x = ops.exp(x * 0.01)
            self.finished("Tensor.__mul__", False)
            self.finished("Functional.exp", False)
        return x.sum()


def main(dump_path: str, task: str, level: str) -> None:
    ms.runtime.launch_blocking()
    net = Net()
    net.apis = level == "mix"
    debugger = PrecisionDebugger(dump_path=dump_path, task=task, level=level)
    x = Tensor(np.random.standard_normal((4, 16)).astype(np.float32))
    forward: Any = ms.value_and_grad(net, None, net.trainable_params())
    forward(x)  # what is slow the first time
    os.write(1, b"ready\n")
    while True:
        net.calls.clear()
        debugger.start(net)
        forward(x)
        os.write(1, f"{net.step} backward\n".encode())
        debugger.stop()
        debugger.step()
        net.step += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
