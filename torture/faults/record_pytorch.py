"""Train nets in PyTorch and dump their steps: ``python -m torture.faults.record_pytorch ROOT JOB…``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from torch import nn

from msprobe_ms.pytorch import PrecisionDebugger
from torture.faults.alignment import truth_file
from torture.faults.catalogue import NETS, Net
from torture.faults.jobs import Job
from torture.nets.pytorch import NETS as MODULES
from torture.nets.pytorch.variants import Changed, change
from torture.nets.values import batch, weight


def make(name: str, seed: int) -> nn.Module:
    """The net in training mode, its weights loaded."""
    net = MODULES[name]()
    state = net.state_dict()
    for path, tensor in state.items():
        if not path.endswith("num_batches_tracked"):
            state[path] = torch.from_numpy(weight(path, tuple(tensor.shape), seed))
    net.load_state_dict(state)
    return net.train()


def tensors(net: Net, seed: int) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Inputs and labels of one step."""
    arrays, labels = batch(net.kind, net.classes, seed)
    return [torch.from_numpy(each) for each in arrays], torch.from_numpy(labels)


def write_truth(changed: Changed, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(changed.truth(), indent=1), encoding="utf-8")


def train(job: Job, root: Path) -> None:
    net = NETS[job.net]
    model = make(job.net, job.seed)
    if job.change:
        changed = change(model, job.change)
        model = changed.net
        write_truth(changed, truth_file(root, job))
    inputs, expected = tensors(net, job.seed)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with job.dump_path(root) as dump_path:
        debugger = PrecisionDebugger(task=job.task, level=job.level, dump_path=dump_path)
        for _ in range(job.steps):
            debugger.start(model)
            nn.functional.cross_entropy(model(*inputs), expected).backward()
            debugger.stop()
            debugger.step()
            optimizer.step()
            optimizer.zero_grad()


def main(root: Path, jobs: list[Job]) -> None:
    torch.set_num_threads(1)
    for job in jobs:
        train(job, root)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Job.parse(text) for text in sys.argv[2:]])
