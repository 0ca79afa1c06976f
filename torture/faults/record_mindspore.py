"""Train nets in MindSpore and dump their steps: ``python -m torture.faults.record_mindspore ROOT JOB…``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn

from msprobe_ms.mindspore import PrecisionDebugger
from torture.faults.catalogue import NETS, Net
from torture.faults.edits import Attribute, Edit, Half, Layer, Loss, Weight
from torture.faults.jobs import DYNAMIC, Job
from torture.nets.mindspore import NETS as CELLS
from torture.nets.mindspore import half
from torture.nets.values import batch, canonical, weight


def make(name: str, edit: Edit | None, seed: int) -> nn.Cell:
    """The net in training mode, its weights loaded, and ``edit`` done to it."""
    ms.set_seed(seed + 1)
    net = CELLS[name]()
    if isinstance(edit, Attribute):
        cell = at(net, edit.cell)
        if not hasattr(cell, edit.name):
            raise AttributeError(f"{name}: {edit.cell or 'the net'} has no attribute {edit.name}")
        setattr(cell, edit.name, edit.value)
    elif isinstance(edit, Layer):
        replace(net, edit.cell, getattr(nn, edit.kind)(*edit.arguments, **dict(edit.options)))
    elif isinstance(edit, Half) and edit.cast_back:
        replace(net, edit.cell, in_half(at(net, edit.cell)))
    elif isinstance(edit, Half):
        at(net, edit.cell).to_float(ms.float16)
    load(net, edit if isinstance(edit, Weight) else None, seed)
    return net.set_train()


def at(net: nn.Cell, path: str) -> nn.Cell:
    for part in filter(None, path.split(".")):
        net = net[int(part)] if part.isdigit() else getattr(net, part)
    return net


def replace(net: nn.Cell, path: str, new: nn.Cell) -> None:
    old = at(net, path)
    if type(new).__name__ != type(old).__name__:
        raise TypeError(f"{path} is a {type(old).__name__}, not a {type(new).__name__}")
    parent, _, name = path.rpartition(".")
    setattr(at(net, parent), name, new)


def in_half(layer: nn.Cell) -> nn.Cell:
    if isinstance(layer, nn.Dense):
        return half.Dense(layer.in_channels, layer.out_channels, has_bias=layer.has_bias)
    sizes = layer.in_channels, layer.out_channels, layer.kernel_size
    return half.Conv2d(*sizes, layer.stride, layer.pad_mode, layer.padding, has_bias=layer.has_bias)


def load(net: nn.Cell, wrong: Weight | None, seed: int) -> None:
    loaded = set()
    for path, parameter in net.parameters_and_names():
        # A layer put in the place of another knows only the end of its path.
        parameter.name = path
        name = canonical(path)
        value = weight(name, parameter.shape, seed)
        if wrong is not None and name == wrong.name:
            loaded.add(name)
            if wrong.how == "unloaded":
                continue
            value = spoilt(value, wrong)
        parameter.set_data(Tensor(value))
    if wrong is not None and not loaded:
        raise KeyError(f"the net has no parameter {wrong.name}")


def spoilt(value: np.ndarray, wrong: Weight) -> np.ndarray:
    if wrong.how == "transposed":
        swapped = value.swapaxes(*wrong.axes)
        if swapped.shape != value.shape:
            raise ValueError(f"{wrong.name}: axes {wrong.axes} of {value.shape} are not of equal size")
        return swapped.copy()
    gates = 4 if "lstm" in wrong.name else 3
    parts = np.split(value, gates)
    return np.concatenate([parts[0], parts[-1], *parts[2:-1], parts[1]])


def tensors(net: Net, seed: int) -> tuple[list[Tensor], Tensor]:
    """Inputs and labels of one step."""
    arrays, labels = batch(net.kind, net.classes, seed)
    inputs = [Tensor(each.astype(np.int32) if each.dtype.kind == "i" else each) for each in arrays]
    return inputs, Tensor(labels.astype(np.int32))


def training_step(model: nn.Cell, edit: Edit | None) -> Callable[..., Any]:
    """Inputs and labels → the loss, and the gradients of the parameters."""
    cross_entropy = nn.CrossEntropyLoss(**dict(edit.options) if isinstance(edit, Loss) else {})

    def forward(*arguments: Any) -> Any:
        return cross_entropy(model(*arguments[:-1]), arguments[-1])

    return ms.value_and_grad(forward, None, model.trainable_params())


def train(job: Job, root: Path) -> None:
    net = NETS[job.net]
    edit = next((fault.edit for fault in net.faults if fault.name == job.change), None)
    ms.set_context(mode=ms.GRAPH_MODE if net.compiled and job.change != DYNAMIC else ms.PYNATIVE_MODE)
    model = make(job.net, edit, job.seed)
    step = training_step(model, edit)
    inputs, expected = tensors(net, job.seed)
    optimizer, gradients = nn.SGD(model.trainable_params(), 0.1), None
    with job.dump_path(root) as dump_path:
        debugger = PrecisionDebugger(task=job.task, level=job.level, dump_path=dump_path)
        for _ in range(job.steps):
            if gradients is not None:
                optimizer(gradients)
            debugger.start(model)
            _, gradients = step(*inputs, expected)
            debugger.stop()
            debugger.step()


def main(root: Path, jobs: list[Job]) -> None:
    ms.runtime.launch_blocking()
    for job in jobs:
        train(job, root)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Job.parse(text) for text in sys.argv[2:]])
