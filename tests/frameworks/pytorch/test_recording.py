"""Recording PyTorch networks: what stands in the dump, and that training does not notice."""

from __future__ import annotations

import copy
import dataclasses
import gc
import json
import math
import threading
import weakref
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from combinations import pairwise
from repository import PACKAGE
from thorough import thorough
from torch import nn
from torch.utils.checkpoint import checkpoint

from msprobe_ms.dump.writing.writer import ERROR_LOG, TENSOR_FOLDER
from msprobe_ms.frameworks.compiled_call import CompilerCall
from msprobe_ms.frameworks.pytorch.framework import PyTorch
from msprobe_ms.pytorch import PrecisionDebugger, seed_all
from msprobe_ms.recording.hooks.compiled import CompilerCalls
from msprobe_ms.support.errors import UsageError

LEVELS = ("L0", "L1", "mix")


class Step(NamedTuple):
    """The dump of one step of one process."""

    folder: Path
    envelope: dict[str, Any]
    data: dict[str, Any]
    stack: dict[str, Any]
    construct: dict[str, Any]

    def tensor(self, leaf: dict[str, Any]) -> torch.Tensor:
        return torch.load(self.folder / TENSOR_FOLDER / leaf["data_name"], weights_only=True)


@contextmanager
def recording(model: nn.Module | None, dump_path: Path, level: str = "mix", **keys: Any) -> Iterator[PrecisionDebugger]:
    debugger = PrecisionDebugger(dump_path=dump_path, level=level, **keys)
    debugger.start(model)
    try:
        yield debugger
    finally:
        debugger.stop()
        debugger.step()


def read_step(dump_path: Path, step: int = 0) -> Step:
    (folder,) = (dump_path / f"step{step}").iterdir()
    log = folder / ERROR_LOG
    assert not log.exists(), log.read_text()
    dump, stack, construct = (
        json.loads((folder / f"{name}.json").read_text()) for name in ("dump", "stack", "construct")
    )
    return Step(folder, {key: value for key, value in dump.items() if key != "data"}, dump["data"], stack, construct)


def leaves(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict) and value.get("type") == "torch.Tensor":
        yield value
    elif isinstance(value, (dict, list)):
        for member in value.values() if isinstance(value, dict) else value:
            yield from leaves(member)


# -- networks ----------------------------------------------------------------------------------------------------------


class TwoLinear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.relu, self.fc2 = nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(self.relu(self.fc1(x)))


def lenet() -> nn.Module:
    features = nn.Sequential(nn.Conv2d(1, 4, 5), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
    return nn.Sequential(features, nn.Flatten(), nn.Linear(4 * 5 * 5, 16), nn.Dropout(0.3), nn.Linear(16, 3))


class Residual(nn.Module):
    """Writes in place, adds in place, and uses its input outside of the block as well."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 4, 3, padding=1)
        self.block = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.ReLU(inplace=True), nn.BatchNorm2d(4))
        self.act, self.head = nn.ReLU(inplace=True), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.act(self.stem(x))
        y = self.block(x)
        y += x
        return self.head(F.relu(y, inplace=True).mean((2, 3)))


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(6, 8, num_layers=2, dropout=0.2), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output, _ = self.lstm(x)
        return self.head(output[-1])


class SelfAttention(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.q, self.k, self.v = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.matmul(F.softmax(self.q(x) @ self.k(x).transpose(1, 2), -1), self.v(x))


class Bert(nn.Module):
    """Adds the attention's input after it: four gradients meet at one tensor, in an order that must not change."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(SelfAttention(6) for _ in range(3))
        self.norm, self.head = nn.LayerNorm(6), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = self.norm(x + layer(x) + 0.1 * x)
        return self.head(x.mean(1))


def encoder() -> nn.Module:
    # batch_first=False: the input is used three times over by identity (`query is key is value`).
    layer = nn.TransformerEncoderLayer(6, 2, 12, dropout=0.1)
    layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return nn.Sequential(layers, nn.Flatten(), nn.Linear(24, 3))


class Checkpointed(nn.Module):
    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.first, self.inner, self.reentrant = nn.Linear(6, 6), TwoLinear(), reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.inner, self.first(x), use_reentrant=self.reentrant)


NETS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "two linears": (TwoLinear, (4, 6)),
    "LeNet": (lenet, (4, 1, 14, 14)),
    "residual in place": (Residual, (4, 1, 6, 6)),
    "LSTM": (Lstm, (5, 4, 6)),
    "encoder": (encoder, (4, 4, 6)),
    "BERT": (Bert, (4, 5, 6)),
    "checkpoint": (lambda: Checkpointed(False), (4, 6)),
    "reentrant checkpoint": (lambda: Checkpointed(True), (4, 6)),
}


def train(
    make: Callable[[], nn.Module], shape: tuple[int, ...], debug: Callable[[nn.Module], Any]
) -> list[torch.Tensor]:
    """Two steps of training: losses, gradients, buffers and the state of the random generator after each."""
    torch.manual_seed(3)
    net = make()
    x, y = torch.randn(shape), torch.tensor([0, 1, 2, 0])
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    seen: list[torch.Tensor] = []
    debugger = debug(net)
    for _ in range(2):
        optimizer.zero_grad()
        if debugger:
            debugger.start(net)
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        if debugger:
            debugger.stop()
            debugger.step()
        optimizer.step()
        seen += [loss.detach(), torch.get_rng_state()]
        seen += [parameter.grad.clone() for parameter in net.parameters()] + [b.clone() for b in net.buffers()]
    return seen


@cache
def trained_alone(net: str) -> list[torch.Tensor]:
    return train(*NETS[net], lambda _: None)


@pytest.mark.parametrize(
    ("net", "level", "task"),
    [
        each if place % len(LEVELS) == place // len(LEVELS) % len(LEVELS) else thorough(each)  # each net at one level
        for place, each in enumerate(pairwise([*NETS], LEVELS, ["statistics", "tensor"]))
    ],
)
def test_neutral(net: str, level: str, task: str, dump_path: Path) -> None:
    """Loss, gradients, buffers and random state are bit-identical with and without the tool."""
    plain = trained_alone(net)
    recorded = train(*NETS[net], lambda _: PrecisionDebugger(dump_path=dump_path, level=level, task=task))
    assert len(plain) == len(recorded)
    assert all(torch.equal(one, other) for one, other in zip(plain, recorded, strict=True))
    for step in (0, 1):
        assert read_step(dump_path, step).data


# -- names and schema --------------------------------------------------------------------------------------------------


def run(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    loss = net(x).square().sum()
    loss.backward()
    return loss


def test_names_order_and_parents(dump_path: Path) -> None:
    net, x = TwoLinear(), torch.randn(2, 6)
    with recording(net, dump_path):
        run(net, x)
    step = read_step(dump_path)
    assert step.envelope == {"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": None}
    assert list(step.data) == [
        "Functional.linear.0.forward",
        "Module.fc1.Linear.forward.0",
        "Functional.relu.0.forward",
        "Module.relu.ReLU.forward.0",
        "Functional.linear.1.forward",
        "Module.fc2.Linear.forward.0",
        "Tensor.square.0.forward",
        "Tensor.sum.0.forward",
        "loss.0.debug",
        "Tensor.sum.0.backward",
        "Tensor.square.0.backward",
        "Functional.linear.1.backward",
        "Module.fc2.Linear.backward.0",
        "Module.fc2.Linear.parameters_grad.0",
        "Functional.relu.0.backward",
        "Module.relu.ReLU.backward.0",
        "Functional.linear.0.backward",
        "Module.fc1.Linear.backward.0",
        "Module.fc1.Linear.parameters_grad.0",
    ]
    assert step.construct["Functional.linear.0.forward"] == "Module.fc1.Linear.forward.0"
    assert step.construct["Functional.linear.1.backward"] == "Module.fc2.Linear.backward.0"
    assert step.construct["Tensor.sum.0.forward"] is None
    assert not any("parameters_grad" in name for name in step.construct)


def test_leaves(dump_path: Path) -> None:
    net = TwoLinear()
    x = torch.randn(2, 6)
    with recording(net, dump_path):
        run(net, x)
    step = read_step(dump_path)
    forward = step.data["Module.fc1.Linear.forward.0"]
    assert list(forward) == ["input_args", "input_kwargs", "output", "parameters"]
    leaf = forward["input_args"][0]
    assert list(leaf) == ["type", "dtype", "shape", "Max", "Min", "Mean", "Norm", "requires_grad", "Sketch"]
    assert (leaf["type"], leaf["dtype"]) == ("torch.Tensor", "torch.float32")
    assert leaf["shape"] == [2, 6] and leaf["requires_grad"] is False
    assert leaf["Norm"] == pytest.approx(float(np.linalg.norm(x.numpy())), rel=1e-6)
    assert forward["output"][0]["requires_grad"] is True
    assert set(forward["parameters"]) == {"weight", "bias"}
    # fc1's input takes no gradient: null, in its place.
    assert step.data["Module.fc1.Linear.backward.0"]["output"] == [None]
    linear = step.data["Functional.linear.1.backward"]
    assert [leaf["shape"] for leaf in linear["input"]] == [[2, 3]]
    assert [leaf["shape"] for leaf in linear["output"]] == [[2, 8], [3, 8], [3]]
    assert [leaf["shape"] for leaf in step.data["Module.fc1.Linear.parameters_grad.0"]["weight"]] == [[8, 6]]


def test_call_sites_are_the_users(dump_path: Path) -> None:
    net = TwoLinear()
    with recording(net, dump_path):
        run(net, torch.randn(2, 6))
    (frames,) = (
        frames for names, frames in read_step(dump_path).stack.values() if "Functional.linear.0.forward" in names
    )
    files = [frame.split(",")[0].replace("\\", "/") for frame in frames]
    assert files[0].endswith("torch/nn/modules/linear.py")
    assert files[1].endswith("pytorch/test_recording.py") and "self.fc2(self.relu(self.fc1(x)))" in frames[1]
    assert not any("module.py" in file or PACKAGE in file for file in files)


def test_special_leaves() -> None:
    leaf = PyTorch().special_leaf
    assert leaf(torch.Size([2, 3])) == {"type": "torch.Size", "value": [2, 3]}
    assert leaf(torch.float16) == {"type": "torch.dtype", "value": "torch.float16"}
    assert leaf(torch.device("cuda:1")) == {"type": "torch.device", "value": "cuda:1"}
    assert leaf(torch.channels_last) == {"type": "torch.memory_format", "format": "channels_last"}
    assert leaf((2, 3)) is None and leaf("cpu") is None


def test_rank_and_process_group(dump_path: Path) -> None:
    assert PyTorch().rank() is None
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        assert PyTorch().rank() == 0
        leaf = PyTorch().special_leaf(torch.distributed.group.WORLD)
        assert leaf is not None and leaf["type"] == "torch.ProcessGroup" and leaf["group_ranks"] == [0]
        net = TwoLinear()
        with recording(net, dump_path, "L0"):
            run(net, torch.randn(2, 6))
        assert (dump_path / "step0" / "rank0" / "dump.json").exists()
    finally:
        torch.distributed.destroy_process_group()


# -- figures and files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("net", ["residual in place", "LSTM", "encoder"])
def test_right_numbers(net: str, dump_path: Path) -> None:
    """Every figure in a dump equals numpy's on the tensor stored beside it."""
    make, shape = NETS[net]
    model = make()
    with recording(model, dump_path, task="tensor"):
        run(model, torch.randn(shape))
    step = read_step(dump_path)
    found = list(leaves(step.data))
    assert len(found) > 20
    for leaf in found:
        tensor = step.tensor(leaf)
        assert type(tensor) is torch.Tensor and not tensor.requires_grad
        assert list(tensor.shape) == leaf["shape"] and str(tensor.dtype) == leaf["dtype"]
        if tensor.dtype == torch.float32:
            array = tensor.numpy().astype(np.float64)
            figures = [array.max(), array.min(), array.mean(), np.linalg.norm(array) if array.ndim else array]
            scale = max(float(np.abs(array).max()), 1e-30)
            assert [leaf[key] for key in ("Max", "Min")] == figures[:2]
            assert leaf["Mean"] == pytest.approx(figures[2], rel=1e-6, abs=1e-6 * scale)
            assert leaf["Norm"] == pytest.approx(figures[3], rel=1e-6)


def test_files_hold_the_tensor_alone(dump_path: Path) -> None:
    big = torch.arange(100_000.0)
    with recording(None, dump_path, "L1", task="tensor"):
        torch.relu(big[10:12])
        torch.relu(big[:6].reshape(2, 3).t())
        torch.relu(nn.Parameter(torch.ones(2)))
        torch.relu(torch.ones(2, dtype=torch.bfloat16))
    step = read_step(dump_path)
    view = step.data["Torch.relu.0.forward"]["input_args"][0]
    assert (step.folder / TENSOR_FOLDER / view["data_name"]).stat().st_size < 4096
    assert step.tensor(view).tolist() == [10.0, 11.0]
    assert step.tensor(step.data["Torch.relu.1.forward"]["input_args"][0]).tolist() == [[0, 3], [1, 4], [2, 5]]
    half = step.data["Torch.relu.3.forward"]["input_args"][0]
    assert step.tensor(half).dtype == torch.bfloat16 and half["Norm"] == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(4).to(torch.float8_e4m3fn),
        torch.randn(4, dtype=torch.complex64).conj(),
        torch.randn(3, 3).to_sparse(),
        torch.empty(3, device="meta"),
        lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
    ],
    ids=["fp8", "conjugated", "sparse", "meta", "quantized"],
)
@pytest.mark.filterwarnings("ignore:.*quantize.*are deprecated:UserWarning")
@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_unusual_tensors(tensor: Any, task: str, dump_path: Path) -> None:
    tensor = tensor if isinstance(tensor, torch.Tensor) else tensor()
    with recording(None, dump_path, "L1", task=task):
        torch.clone(tensor)
    leaf = read_step(dump_path).data["Torch.clone.0.forward"]["output"][0]
    assert leaf["shape"] == list(tensor.shape) and (leaf["Max"] is None) == tensor.is_meta


# -- gradients ---------------------------------------------------------------------------------------------------------


def test_parameter_gradients(dump_path: Path) -> None:
    """What stands in parameters_grad is `.grad`, bit for bit; a shared layer's is the sum of its uses."""
    net = Bert()
    with recording(net, dump_path, "L0", task="tensor"):
        run(net, torch.randn(2, 5, 6))
    step = read_step(dump_path)
    found = 0
    for name, module in net.named_modules():
        for key, parameter in module.named_parameters(recurse=False):
            leaf = step.data[f"Module.{name}.{type(module).__name__}.parameters_grad.0"][key][0]
            assert torch.equal(step.tensor(leaf), parameter.grad)
            found += 1
    assert found == 22


def test_every_backward_of_accumulated_gradients(dump_path: Path) -> None:
    net, x = TwoLinear(), torch.randn(2, 6)
    with recording(net, dump_path, "L0", task="tensor"):
        run(net, x)
        first = net.fc1.weight.grad.clone()
        run(net, 2 * x)
    step = read_step(dump_path)
    one, two = (step.tensor(step.data[f"Module.fc1.Linear.parameters_grad.{n}"]["weight"][0]) for n in (0, 1))
    assert torch.equal(one, first) and torch.equal(one + two, net.fc1.weight.grad)


class Adds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.inner(x)


def test_only_this_calls_gradient(dump_path: Path) -> None:
    net = Adds()
    x = torch.randn(2, 3, requires_grad=True)
    with recording(net, dump_path, task="tensor"):
        net(x).sum().backward()
    step = read_step(dump_path)
    through = torch.ones(2, 3) @ net.inner.weight
    for entry in ("Module.inner.Linear.backward.0", "Functional.linear.0.backward"):
        assert torch.allclose(step.tensor(step.data[entry]["output"][0]), through)
    left, right = step.data["Tensor.__add__.0.backward"]["output"]
    assert step.tensor(left).eq(1).all() and step.tensor(right).eq(1).all()
    assert torch.allclose(x.grad, through + 1)


def test_loss_gradient_is_with_respect_to_the_logits(dump_path: Path) -> None:
    x = torch.randn(4, 3, requires_grad=True)
    with recording(None, dump_path, "L1", task="tensor"):
        F.cross_entropy(x, torch.tensor([0, 1, 2, 0])).backward()
    step = read_step(dump_path)
    logits, labels = step.data["Functional.cross_entropy.0.backward"]["output"]
    assert torch.equal(step.tensor(logits), x.grad) and labels is None


def test_in_place_calls(dump_path: Path) -> None:
    """Inputs are recorded as they were, and writing in place takes part in backward."""
    w, one = torch.tensor([-1.0, 2.0], requires_grad=True), torch.ones(2)
    with recording(None, dump_path, "L1", task="tensor"):
        x = w * 3
        x.relu_()
        y = x * 1
        y += one
        y[0] = w[1]
        y.sum().backward()
    step = read_step(dump_path)
    relu = step.data["Tensor.relu_.0.forward"]
    assert step.tensor(relu["input_args"][0]).tolist() == [-3, 6] and step.tensor(relu["output"][0]).tolist() == [0, 6]
    assert step.tensor(step.data["Tensor.relu_.0.backward"]["input"][0]).tolist() == [0, 1]
    assert step.tensor(step.data["Tensor.__iadd__.0.backward"]["output"][0]).tolist() == [0, 1]
    assigned = step.data["Tensor.__setitem__.0.forward"]
    assert step.tensor(assigned["output"][0]).tolist() == [2, 7]
    assert step.tensor(step.data["Tensor.__setitem__.0.backward"]["output"][1]).item() == 1
    assert w.grad.tolist() == [0, 4]


def test_no_gradients_without_a_graph(dump_path: Path) -> None:
    net, x = TwoLinear(), torch.randn(2, 6)
    with recording(net, dump_path), torch.no_grad():
        net(x)
    with recording(net, dump_path.with_name("inference")), torch.inference_mode():
        net(x)
    for path in (dump_path, dump_path.with_name("inference")):
        data = read_step(path).data
        assert len(data) == 6 and all("forward" in name for name in data)


def test_frozen_parameters(dump_path: Path) -> None:
    net = TwoLinear()
    net.fc1.requires_grad_(False)
    with recording(net, dump_path, "L0"):
        run(net, torch.randn(2, 6))
    backward = [name for name in read_step(dump_path).data if "forward" not in name]
    assert backward == ["loss.0.debug", "Module.fc2.Linear.backward.0", "Module.fc2.Linear.parameters_grad.0"]


class Unused(nn.Module):
    """Two results, one of which takes no part in the loss."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2, x * 3


class UsesOne(nn.Module):
    def __init__(self, which: int) -> None:
        super().__init__()
        self.two, self.which = Unused(), which

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.two(x)[self.which]


@pytest.mark.parametrize("which", [0, 1])
def test_unused_results(which: int, dump_path: Path) -> None:
    net = UsesOne(which)
    with recording(net, dump_path, "L0", task="tensor"):
        net(torch.ones(2, requires_grad=True)).sum().backward()
    step = read_step(dump_path)
    entry = step.data["Module.two.Unused.backward.0"]
    assert [leaf is None for leaf in entry["input"]] == [which == 1, which == 0]
    assert step.tensor(entry["output"][0]).tolist() == [2 + which, 2 + which]


def test_results_of_one_node(dump_path: Path) -> None:
    x = torch.arange(6.0, requires_grad=True)
    with recording(None, dump_path, "L1", task="tensor"):
        a, _, c = x.mul(1).chunk(3)
        (a.sum() + 2 * c.sum()).backward()
    step = read_step(dump_path)
    entry = step.data["Tensor.chunk.0.backward"]
    assert [leaf if leaf is None else step.tensor(leaf).tolist() for leaf in entry["input"]] == [[1, 1], None, [2, 2]]
    assert step.tensor(entry["output"][0]).tolist() == [1, 1, 0, 0, 2, 2]


def test_double_backward(dump_path: Path) -> None:
    """A gradient penalty: backward with a graph, then through it; no figure changes."""

    def penalty(record: bool) -> tuple[torch.Tensor, ...]:
        torch.manual_seed(5)
        net, x = TwoLinear(), torch.randn(4, 6, requires_grad=True)
        with recording(net, dump_path) if record else nullcontext():
            (gradient,) = torch.autograd.grad(net(x).tanh().sum(), x, create_graph=True)
            (gradient.norm() - 1).square().backward()
        return tuple(p.grad for p in net.parameters() if p.grad is not None)

    assert all(torch.equal(one, other) for one, other in zip(penalty(False), penalty(True), strict=True))
    assert "Module.fc1.Linear.backward.0" in read_step(dump_path).data


def test_sparse_and_hooked_gradients(dump_path: Path) -> None:
    table = nn.Embedding(5, 3, sparse=True)
    table.weight.register_hook(lambda gradient: gradient * 2)
    net = nn.Sequential(table)
    with recording(net, dump_path, task="tensor"):
        (net(torch.tensor([1, 1, 4])) + table(torch.tensor([2]))).sum().backward()
    step = read_step(dump_path)
    leaf = step.data["Module.0.Embedding.parameters_grad.0"]["weight"][0]
    assert torch.equal(step.tensor(leaf), table.weight.grad.to_dense())


def test_autocast(dump_path: Path) -> None:
    """A weight used twice is cast once under autocast; it still is."""

    def grads(debugger: PrecisionDebugger | None) -> list[torch.Tensor]:
        torch.manual_seed(1)
        net, x = TwoLinear(), torch.randn(4, 6)
        if debugger:
            debugger.start(net)
        with torch.autocast("cpu", torch.bfloat16):
            loss = (net(x) * net(x + 1)).float().sum()
        loss.backward()
        if debugger:
            debugger.stop()
            debugger.step()
        return [parameter.grad for parameter in net.parameters()]

    recorded = grads(PrecisionDebugger(dump_path=dump_path, level="mix"))
    assert all(torch.equal(one, other) for one, other in zip(grads(None), recorded, strict=True))
    assert read_step(dump_path).data["Module.fc1.Linear.forward.0"]["output"][0]["dtype"] == "torch.bfloat16"


def test_graphs_are_not_kept_alive(dump_path: Path) -> None:
    """A graph that never runs backward is freed with its loss, not when the garbage collector comes by."""

    class Holds(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.held = Held()
            held.append(weakref.ref(ctx.held))
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return gradient * 2

    class Held:
        pass

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = TwoLinear()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(Holds.apply(x)) + x.sum()

    held: list[weakref.ref[Held]] = []
    net = nn.Sequential(Net())
    gc.collect()
    gc.disable()
    try:
        with recording(net, dump_path):
            loss = net(torch.ones(2, 6, requires_grad=True))
            del loss
            assert held[0]() is None
    finally:
        gc.enable()


def test_python_functions(dump_path: Path) -> None:
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, factor: float, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x * factor + y

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> tuple[None, torch.Tensor, torch.Tensor]:
            return None, gradient * 3, gradient

    class Scaled(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return Scale.apply(3.0, x, y)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scaled = Scaled()

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return self.scaled(x, y)

    net = Net()
    with recording(net, dump_path, "L0", task="tensor"):
        net(torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)).sum().backward()
    step = read_step(dump_path)
    output = step.data["Module.scaled.Scaled.backward.0"]["output"]
    assert [step.tensor(leaf).tolist() for leaf in output] == [[3, 3], [1, 1]]


# -- calls -------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Result:
    logits: torch.Tensor
    hidden: list[torch.Tensor]


Pair = namedtuple("Pair", "left right")


class Containers(nn.Module):
    def forward(self, *, pair: Pair, table: dict[str, torch.Tensor], flag: bool = True, nothing: None = None) -> Result:
        return Result(pair.left * table["a"], [pair.right])


class Identity(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


class Recursive(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.itself: list[nn.Module] = [self]

    def forward(self, x: torch.Tensor, depth: int = 2) -> torch.Tensor:
        return self.fc(x) if depth == 0 else self(x * 2, depth - 1) + 1


class Holder(nn.Module):
    def __init__(self, **modules: nn.Module) -> None:
        super().__init__()
        for name, module in modules.items():
            setattr(self, name, module)


def test_containers(dump_path: Path) -> None:
    net = Holder(c=Containers())
    left, right, a = (torch.full((2,), n, requires_grad=True) for n in (1.0, 2.0, 3.0))
    with recording(net, dump_path, "L0", task="tensor"):
        table = {"a": a}
        result = net.c(pair=Pair(left, right), table=table)
        assert table["a"] is a and result.hidden[0] is right
        (result.logits.sum() + (2 * result.hidden[0]).sum()).backward()
    step = read_step(dump_path)
    forward = step.data["Module.c.Containers.forward.0"]
    assert forward["input_args"] == [] and set(forward["input_kwargs"]) == {"pair", "table"}
    assert set(forward["output"][0]) == {"logits", "hidden"}
    pair, members = step.data["Module.c.Containers.backward.0"]["output"]
    assert step.tensor(pair["left"]).tolist() == [3, 3] and step.tensor(members["a"]).tolist() == [1, 1]


def test_module_that_returns_its_input(dump_path: Path) -> None:
    net = Holder(i=Identity(), drop=nn.Dropout(0.5).eval())
    x = torch.ones(2, requires_grad=True) * 1
    with recording(net, dump_path, "L0", task="tensor"):
        y = net.i(x)
        assert y is x
        net.drop(y).sum().backward()
    step = read_step(dump_path)
    for entry in ("Module.i.Identity.backward.0", "Module.drop.Dropout.backward.0"):
        assert step.tensor(step.data[entry]["input"][0]).tolist() == [1, 1]
        assert step.tensor(step.data[entry]["output"][0]).tolist() == [1, 1]


def test_calls_are_kept_apart(dump_path: Path) -> None:
    shared = nn.Linear(3, 3)
    net = Holder(r=Recursive(), one=shared, other=shared)
    with recording(net, dump_path, "L0"):
        x = net.r(torch.ones(2, 3, requires_grad=True))
        net.other(net.one(x)).sum().backward()
    step = read_step(dump_path)
    recursive = [name for name in step.data if "Recursive" in name]
    assert sorted(recursive) == sorted(
        f"Module.r.Recursive.{way}.{n}" for way in ("forward", "backward") for n in range(3)
    )
    assert step.construct["Module.r.Recursive.forward.2"] == "Module.r.Recursive.forward.1"
    assert step.construct["Module.r.fc.Linear.backward.0"] == "Module.r.Recursive.backward.2"
    assert [name for name in step.data if ".one." in name and "forward" in name] == [
        "Module.one.Linear.forward.0",
        "Module.one.Linear.forward.1",
    ]
    assert not any(".other." in name for name in step.data)


def test_exceptions_pass(dump_path: Path) -> None:
    net = TwoLinear()
    with recording(net, dump_path):
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            net(torch.randn(2, 5))
        run(net, torch.randn(2, 6))
    step = read_step(dump_path)
    assert step.construct["Module.fc1.Linear.forward.1"] is None
    assert "Module.fc1.Linear.backward.1" in step.data and "Module.fc1.Linear.forward.0" not in step.data


def test_other_threads(dump_path: Path) -> None:
    net = Holder(a=TwoLinear(), b=TwoLinear())
    threads = [threading.Thread(target=run, args=(each, torch.randn(2, 6))) for each in (net.a, net.b)]
    with recording(net, dump_path):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    step = read_step(dump_path)
    for name in "ab":
        assert step.construct[f"Module.{name}.fc1.Linear.forward.0"] == f"Module.{name}.TwoLinear.forward.0"
        assert f"Module.{name}.fc1.Linear.backward.0" in step.data


def test_copies_made_while_recording(dump_path: Path) -> None:
    """A copy takes the hooks with it; they are deaf once the step is over."""
    net, x = TwoLinear(), torch.randn(2, 6)
    with recording(net, dump_path, "L0"):
        copied = copy.deepcopy(net)
    before = {path: path.stat().st_mtime_ns for path in dump_path.rglob("*")}
    run(copied, x)
    assert {path: path.stat().st_mtime_ns for path in dump_path.rglob("*")} == before


# -- on and off --------------------------------------------------------------------------------------------------------


def snapshot(net: nn.Module) -> list[Any]:
    spaces = [dict(vars(holder)) for holder in (torch, F, torch.Tensor, torch._VF, torch.jit, torch.fx.Tracer)]
    hooks = [(len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks)) for m in net.modules()]
    return [*spaces, hooks, [parameter._backward_hooks or None for parameter in net.parameters()]]


def test_nothing_when_off(dump_path: Path) -> None:
    net = TwoLinear()
    before = snapshot(net)
    debugger = PrecisionDebugger(dump_path=dump_path, level="mix", step=[0])
    assert snapshot(net) == before
    debugger.start(net)
    assert torch.nn.functional.relu is not before[1]["relu"]
    run(net, torch.randn(2, 6))
    debugger.stop()
    debugger.step()
    assert snapshot(net) == before
    debugger.start(net)  # a step that is not selected
    assert snapshot(net) == before
    run(net, torch.randn(2, 6))
    debugger.stop()
    debugger.step()
    assert len(list(dump_path.iterdir())) == 1


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_compiled_and_scripted_code(level: str, dump_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Compilers read the genuine functions; what they made runs as it was made."""

    class Softmax(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.softmax(x, -1).exp()

    x = torch.randn(3, 4, requires_grad=True)
    compiled = torch.compile(Softmax(), backend="aot_eager", fullgraph=True)
    before = torch.jit.script(Softmax())
    expected = Softmax()(x)
    net = Holder(compiled=compiled, scripted=before, plain=Softmax())
    with recording(net, dump_path, level):
        for made in (
            before,
            torch.jit.script(Softmax()),
            torch.jit.trace(Softmax(), x),
            torch.fx.symbolic_trace(Softmax()),
        ):
            assert torch.equal(made(x), expected)
        assert torch.equal(net.compiled(x), expected) and torch.equal(net.compiled(x[:2]), expected[:2])
        assert torch.equal(torch.func.vmap(F.softmax)(x, dim=-1), F.softmax(x, -1))
        net.plain(x).sum().backward()
    step = read_step(dump_path)
    assert ("Module.plain.Softmax.backward.0" in step.data) == (level != "L1")
    assert not any("compiled" in name or "scripted" in name for name in step.data)
    said = "the module compiled is compiled or scripted: its modules are not recorded; give the eager one"
    assert (said in caplog.text) == (level != "L1")
    assert torch.equal(compiled(x), expected)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_scripted_modules_are_named_once(dump_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    net = nn.ModuleDict({"scripted": torch.jit.script(nn.Linear(2, 2))})
    debugger = PrecisionDebugger(dump_path=dump_path, level="L0")
    for _ in range(3):
        debugger.start(net)
        debugger.stop()
        debugger.step()
    assert caplog.text.count("the module scripted is compiled or scripted") == 1


@pytest.mark.parametrize("level", LEVELS)
def test_compiled_functions(level: str, dump_path: Path) -> None:
    """A compiled function that calls recorded modules is recorded call by call, and is whole again afterwards."""
    net, x = TwoLinear(), torch.randn(2, 6)

    @torch.compile(backend="aot_eager")
    def compiled(x: torch.Tensor) -> torch.Tensor:
        return F.softmax(net(x), -1)

    expected = compiled(x)
    with recording(net, dump_path, level):
        assert torch.equal(compiled(x), expected)
    assert not any(name.startswith("Module") for name in read_step(dump_path).data if level == "L1")
    assert torch.equal(compiled(x), expected)


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_what_may_not_be_split_is_compiled_whole(level: str, dump_path: Path) -> None:
    net, x = TwoLinear(), torch.randn(2, 6)

    @torch.compile(backend="eager", fullgraph=True)
    def compiled(x: torch.Tensor) -> torch.Tensor:
        return F.softmax(net(x), -1)

    expected = F.softmax(net(x), -1)
    with recording(net, dump_path, level):
        assert torch.equal(compiled(x), expected) and torch.equal(compiled(x), expected)
        exported = torch.export.export(net, (x,), strict=True)
        net(x)
    assert torch.equal(compiled(x), expected) and torch.equal(exported.module()(x), net(x))
    assert any(name.startswith("Module.fc") for name in read_step(dump_path).data)


class OneCompiler:
    """A framework that has a compiler once another call has imported it."""

    def __init__(self) -> None:
        self.imported = False
        self.compile = self._import
        self.convert = lambda: [hook.there for hook in self.hooks]
        self.hooks = [Hook()]

    def _import(self) -> None:
        self.imported = True

    def compiler_calls(self) -> list[CompilerCall]:
        calls = [CompilerCall(self, "compile")]
        return [*calls, CompilerCall(self, "convert")] if self.imported else calls

    def prepare(self) -> None:
        pass


class Hook:
    there = True

    @contextmanager
    def suspended(self) -> Iterator[None]:
        self.there = False
        yield
        self.there = True


def test_hooks_are_away_in_a_compiler_that_is_imported_by_its_first_call() -> None:
    framework = OneCompiler()
    recorder: Any = SimpleNamespace(blind=nullcontext)
    calls = CompilerCalls(cast(Any, framework), recorder, framework.hooks)
    calls.install()
    assert framework.convert() == [True]
    framework.compile()
    assert framework.convert() == [False]
    calls.remove()
    framework.compile()
    assert framework.convert() == [True]


def test_printing_is_not_recorded(dump_path: Path) -> None:
    with recording(None, dump_path, "L1"):
        assert "tensor" in f"{torch.randn(3, 3)}{torch.relu(torch.ones(2))!r}"
    assert list(read_step(dump_path).data) == ["Torch.randn.0.forward", "Torch.relu.0.forward"]


# -- seeds -------------------------------------------------------------------------------------------------------------


def test_seeds_ask_for_deterministic_algorithms_and_mistakes_are_told() -> None:
    seed_all(7)
    assert not torch.are_deterministic_algorithms_enabled()
    try:
        seed_all(7, mode=True)
        assert torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(False)
    with pytest.raises(UsageError, match="seed -1"):
        seed_all(-1)
