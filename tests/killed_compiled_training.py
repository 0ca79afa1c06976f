"""A compiled training whose every step is recorded; it tells the steps that are over, until it is killed.

``python killed_compiled_training.py DUMP_PATH``.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import mindspore as ms
import nets_mindspore as nets

from msprobe_ms.mindspore import PrecisionDebugger


def main(dump_path: str) -> None:
    ms.set_context(mode=ms.GRAPH_MODE)
    net, x, labels = nets.make("two_linear")

    def forward(x: Any, labels: Any) -> Any:
        return nets.loss(net, x, labels)

    step: Any = ms.value_and_grad(forward, None, net.trainable_params())
    debugger = PrecisionDebugger(dump_path=dump_path, task="tensor", level="L0")
    for number in range(100_000):
        debugger.start(net)
        step(x, labels)
        debugger.stop()
        debugger.step()
        os.write(1, f"{number}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
