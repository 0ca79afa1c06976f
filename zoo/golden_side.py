"""Train the PyTorch network of a pair: ``python -m zoo.golden_side ROOT JOB…``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from zoo.environment import prepare

prepare()

import torch  # noqa: E402

from msprobe_ms.pytorch import PrecisionDebugger  # noqa: E402
from zoo.jobs import STEPS, Job, weights_file  # noqa: E402
from zoo.pair import Pair, load  # noqa: E402


def make(pair: Pair) -> torch.nn.Module:
    """The network in training mode, its weights drawn; constant ones (norms, biases) are made uneven."""
    torch.manual_seed(2 * pair.seed)
    net = pair.golden().float().train()
    generator = torch.Generator().manual_seed(2 * pair.seed + 1)
    with torch.no_grad():
        for name, tensor in net.state_dict().items():
            if tensor.is_floating_point() and tensor.numel() > 1 and (tensor.dim() < 2 or tensor.std() == 0):
                noise = torch.randn(tensor.shape, generator=generator) * 0.1
                tensor.add_(noise.abs() if name.endswith("running_var") else noise)
    return net


def save_weights(net: torch.nn.Module, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **{name: tensor.numpy() for name, tensor in net.state_dict().items()})


def batch_of(pair: Pair, step: int) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array) for name, array in pair.batch_of(step).items()}


def optimizer_of(pair: Pair, net: torch.nn.Module) -> torch.optim.Optimizer:
    if pair.optimizer == "adam":
        return torch.optim.Adam(net.parameters(), pair.learning_rate)
    return torch.optim.SGD(net.parameters(), pair.learning_rate, momentum=0.9)


def step_of(pair: Pair, net: torch.nn.Module, step: int) -> Any:
    """Forward and backward of one step; returns the loss."""
    loss = pair.golden_loss(net, batch_of(pair, step), torch.nn.functional.cross_entropy)
    loss.backward()
    return loss


def train(job: Job, root: Path) -> None:
    pair = load(job.pair, root)
    net = make(pair)
    save_weights(net, weights_file(root, job.pair))
    optimizer = optimizer_of(pair, net)
    with job.dump_path(root) as dump_path:
        debugger = PrecisionDebugger(task=job.task, level=job.level, dump_path=str(dump_path))
        for step in range(STEPS):
            optimizer.zero_grad()
            debugger.start(net)
            step_of(pair, net, step)
            debugger.stop()
            debugger.step()
            optimizer.step()


if __name__ == "__main__":
    for text in sys.argv[2:]:
        train(Job.parse(text), Path(sys.argv[1]))
