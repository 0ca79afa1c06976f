"""Five nets in PyTorch, twins of ``mindspore_nets`` under other attribute names.

Run as a script: ``python pytorch_nets.py ROOT JOB…``, where a JOB is ``NET:LEVEL:TASK:STEPS``, writes the weights and
the batch, under the names of the MindSpore twin, to ``ROOT/NET.npz``, then trains and dumps to
``ROOT/pytorch/NET-LEVEL-TASK``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class TwoLinear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(16, 16)
        self.second = nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.second(self.first(x)))


class LeNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv_a = nn.Conv2d(1, 6, 5)
        self.conv_b = nn.Conv2d(6, 16, 3, stride=2, padding=1)
        self.activation = nn.ReLU()
        self.pooling = nn.MaxPool2d(2, 2)
        self.flat = nn.Flatten()
        self.dense_a = nn.Linear(16 * 6 * 6, 64)
        self.dense_b = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.activation(self.conv_a(x))
        x = self.pooling(self.activation(self.conv_b(x)))
        return self.dense_b(self.activation(self.dense_a(self.flat(x))))


class BasicBlock(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv_a = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm_a = nn.BatchNorm2d(channels)
        self.conv_b = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm_b = nn.BatchNorm2d(channels)
        self.activation = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.activation(self.norm_a(self.conv_a(x)))
        return self.activation(x + self.norm_b(self.conv_b(y)) * 0.5)


class ResidualNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.entry = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.stages = nn.Sequential(BasicBlock(8), BasicBlock(8), BasicBlock(8))
        self.classifier = nn.Linear(8, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.stages(self.norm(self.entry(x))).mean((2, 3)))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.memory = nn.LSTM(8, 16, num_layers=2, batch_first=True)
        self.classifier = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        zeros = torch.zeros(2, x.shape[0], 16)
        sequence, _ = self.memory(x, (zeros, zeros))
        return self.classifier(sequence[:, -1])


class SelfAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.dense = nn.Linear(width, width)

    def _split(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        return x.reshape(batch, length, self.heads, self.size).permute(0, 2, 1, 3)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self._split(self.query(x)), self._split(self.key(x)), self._split(self.value(x))
        weights = F.softmax(torch.matmul(q, k.permute(0, 1, 3, 2)) * self.size**-0.5, -1)
        return self.dense(torch.matmul(weights, v).permute(0, 2, 1, 3).reshape(x.shape))


class TransformerLayer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.input_norm = nn.LayerNorm(width)
        self.self_attention = SelfAttention(width, heads)
        self.output_norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 2 * width)
        self.gelu = nn.GELU()
        self.contract = nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.self_attention(self.input_norm(x))
        return x + self.contract(self.gelu(self.expand(self.output_norm(x))))


class Encoder(nn.Module):
    """Four layers, 256 wide."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.tokens = nn.Embedding(50, width)
        self.position = nn.Parameter(torch.zeros(12, width))
        self.blocks = nn.ModuleList([TransformerLayer(width, 4) for _ in range(4)])
        self.final = nn.LayerNorm(width)
        self.classifier = nn.Linear(width, 10)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.position
        for block in self.blocks:
            x = block(x)
        return self.classifier(self.final(x).mean(1))


NETS = {"two_linear": TwoLinear, "lenet": LeNet, "residual": ResidualNet, "lstm": Recurrent, "encoder": Encoder}

#: Class of the parent → child → the twin's name; what a user writes as layer mapping, turned around.
LAYER_MAPPINGS: dict[str, dict[str, dict[str, str]]] = {
    "two_linear": {"TopLayer": {"linear1": "first", "linear2": "second"}},
    "lenet": {
        "TopLayer": {
            "conv1": "conv_a", "conv2": "conv_b", "relu": "activation", "pool": "pooling", "flatten": "flat",
            "fc1": "dense_a", "fc2": "dense_b",
        }
    },
    "residual": {
        "TopLayer": {"stem": "entry", "bn": "norm", "blocks": "stages", "head": "classifier"},
        "Block": {"conv1": "conv_a", "bn1": "norm_a", "conv2": "conv_b", "bn2": "norm_b", "relu": "activation"},
    },
    "lstm": {"TopLayer": {"lstm": "memory", "head": "classifier"}},
    "encoder": {
        "TopLayer": {"embedding": "tokens", "layers": "blocks", "norm": "final", "head": "classifier"},
        "EncoderLayer": {
            "norm1": "input_norm", "attention": "self_attention", "norm2": "output_norm", "up": "expand",
            "act": "gelu", "down": "contract",
        },
        "Attention": {"q": "query", "k": "key", "v": "value", "out": "dense"},
    },
}  # fmt: skip

_LEAVES = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_variance"}


def twin_names(name: str, net: nn.Module) -> dict[str, str]:
    """The net's parameters and running statistics → their names in the MindSpore twin."""
    back = {new: old for rules in LAYER_MAPPINGS[name].values() for old, new in rules.items()}
    named = {}
    for full in net.state_dict():
        *path, leaf = full.split(".")
        owner = net.get_submodule(".".join(path))
        if leaf == "num_batches_tracked":
            continue
        if isinstance(owner, nn.LayerNorm | nn.BatchNorm2d):
            leaf = _LEAVES[leaf]
        elif isinstance(owner, nn.Embedding):
            leaf = "embedding_table"
        named[full] = ".".join([back.get(part, part) for part in path] + [leaf])
    return named


def make(name: str, weights: Path) -> tuple[nn.Module, Tensor, Tensor]:
    """A net with random weights, a batch and labels; all of it is written to ``weights`` for the twin."""
    generator = np.random.default_rng(11)
    net = NETS[name]()
    state = net.state_dict()
    values: dict[str, np.ndarray] = {}
    for full, twin in twin_names(name, net).items():
        shape = tuple(state[full].shape)
        if twin.endswith(("moving_mean", "moving_variance")):
            value = np.full(shape, float(twin.endswith("variance")), np.float32)
        else:
            fan_in = int(np.prod(shape[1:])) if len(shape) > 1 else 25
            value = (generator.standard_normal(shape) / np.sqrt(fan_in)).astype(np.float32)
            value += np.float32(twin.endswith("gamma"))
        state[full] = torch.from_numpy(value)
        values[twin] = value
    net.load_state_dict(state)
    batches = {"two_linear": (8, 16), "lenet": (4, 1, 28, 28), "residual": (4, 3, 12, 12), "lstm": (4, 6, 8)}
    if name == "encoder":
        values["batch"] = generator.integers(0, 50, (3, 12)).astype(np.int32)
    else:
        values["batch"] = generator.standard_normal(batches[name]).astype(np.float32)
    values["labels"] = generator.integers(0, 8, len(values["batch"]))
    np.savez(weights, **values)
    batch = torch.from_numpy(values["batch"])
    return net.train(), batch.long() if name == "encoder" else batch, torch.from_numpy(values["labels"])


def train(name: str, level: str, task: str, dump_path: Path, weights: Path, steps: int) -> None:
    from msprobe_ms.pytorch import PrecisionDebugger

    net, x, labels = make(name, weights)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    debugger = PrecisionDebugger(task=task, level=level, dump_path=dump_path)
    for _ in range(steps):
        debugger.start(net)
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), labels)
        loss.backward()
        debugger.stop()
        debugger.step()
        optimizer.step()


def main(root: Path, jobs: list[str]) -> None:
    torch.set_num_threads(1)
    for job in jobs:
        name, level, task, steps = job.split(":")
        train(name, level, task, root / "pytorch" / f"{name}-{level}-{task}", root / f"{name}.npz", int(steps))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
