"""A step on two ranks, recorded: ``msrun … two_ranks.py FOLDER [DIES]``.

Once in FOLDER/dump on both ranks, then in FOLDER/selected on rank 1 alone. DIES is the rank that is killed in the
middle of the first.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, communication, mint, nn, ops

from msprobe_ms.mindspore import PrecisionDebugger


class Collectives(nn.Cell):
    """Sums what a layer computes over the ranks, through primitives that the Cell holds."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(3, 2, weight_init="ones")
        self.reduce = ops.AllReduce()
        self.gather = ops.AllGather()

    def construct(self, x: Tensor) -> Tensor:
        summed = self.reduce(self.fc(x))
        self.gather(ops.stop_gradient(summed))  # its backward has no CPU kernel
        return summed


def main(folder: str, dies: str = "-1") -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
    communication.init()
    record(Path(folder, "dump"), [], int(dies))
    if dies == "-1":
        record(Path(folder, "selected"), [1])


def record(dump_path: Path, ranks: list[int], dies: int = -1) -> None:
    rank = communication.get_rank()
    config = dump_path.with_name(f"config_of_{dump_path.name}_{rank}.json")
    config.write_text(json.dumps({"dump_path": str(dump_path), "task": "tensor", "level": "mix", "rank": ranks}))
    net = nn.SequentialCell(nn.Dense(3, 2, weight_init="ones"))
    collectives = Collectives()
    gradient: Any = ms.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
    gradient_of_all: Any = ms.value_and_grad(lambda x: collectives(x).sum(), None, collectives.trainable_params())
    debugger = PrecisionDebugger(config)
    debugger.start([net, collectives])
    _, gradients = gradient(Tensor(np.full((4, 3), rank + 1, np.float32)))
    if rank == dies:
        os.kill(os.getpid(), signal.SIGKILL)
    if dies != -1:
        return
    weight_gradient = gradients[0] + 0.0
    mint.distributed.all_reduce(weight_gradient)
    handle = mint.distributed.all_reduce(Tensor(np.full(2, rank, np.float32)), op="max", async_op=True)
    handle.wait()
    gathered = [Tensor(np.zeros(2, np.float32)) for _ in range(2)]
    mint.distributed.all_gather(gathered, Tensor(np.full(2, rank + 5, np.float32)))
    sent = Tensor(np.full(2, rank, np.float32))
    mint.distributed.broadcast(sent, 1)
    mint.distributed.barrier()
    _, gradients = gradient_of_all(Tensor(np.full((4, 3), rank + 1, np.float32)))
    nn.DistributedGradReducer(collectives.trainable_params(), mean=True, degree=2)(gradients)
    ops.Broadcast(1)((Tensor(np.full(2, rank, np.float32)),))
    debugger.stop()
    debugger.step()
    if not ranks:
        print(json.dumps({"rank": rank, "sum": weight_gradient.asnumpy().tolist()}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
