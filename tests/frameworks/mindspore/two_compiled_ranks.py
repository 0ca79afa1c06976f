"""Compiled training steps on two ranks, recorded: ``msrun … two_compiled_ranks.py FOLDER``, or `forked_ranks`.

FOLDER gets ``kernels/dump`` (level L2) and ``cells`` (level L0). Kernels come first: MindSpore reads the configuration
of its kernel dump at a process's first graph.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from compiled_steps import debugger_of, digest, small, trained
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


def kernels(folder: Path) -> dict[str, Any]:
    """One step, its gradients summed over both ranks; rank 0 has its debugger before it communicates."""
    if os.environ["RANK_ID"] == "0":
        debugger = debugger_of(folder, {"task": "tensor"})
        communication.init()
    else:
        communication.init()
        debugger = debugger_of(folder, {"task": "tensor"})
    net, x, y = small()
    step = trained(net)
    step.grad_reducer = nn.DistributedGradReducer(net.trainable_params(), mean=True, degree=2)
    debugger.start(net)
    loss = step(x + communication.get_rank(), y)
    debugger.stop()
    debugger.step()
    debugger.retire()
    return {"loss": loss.asnumpy().tobytes().hex(), "weight": digest(net.fc1.weight.asnumpy())}


def cells(folder: Path) -> bool:
    """Whether a step that sums over the ranks is the same before, while it is recorded, and after."""
    net = Net()
    gradient: Any = ms.value_and_grad(net, None, net.trainable_params())
    x = Tensor(np.full((4, 3), communication.get_rank() + 1, np.float32))

    def step() -> list[Any]:
        value, gradients = gradient(x)
        return [value.asnumpy().tolist(), *(each.asnumpy().tolist() for each in gradients)]

    plain = step()
    debugger = PrecisionDebugger(dump_path=folder, level="L0", task="tensor")
    debugger.start(net)
    recorded = step()
    debugger.stop()
    debugger.step()
    return recorded == plain == step()


def main(folder: str) -> None:
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU", jit_config={"jit_level": "O0"})
    (Path(folder) / "kernels").mkdir(exist_ok=True)
    recorded = kernels(Path(folder) / "kernels")
    print(json.dumps({"kernels": recorded, "same": cells(Path(folder) / "cells")}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
