"""Five nets in MindSpore, twins of ``pytorch_nets`` under other attribute names, and the faults planted in them.

Run as a script: ``python mindspore_nets.py ROOT JOB…``, where a JOB is ``NET:FAULT:LEVEL:TASK:STEPS`` and FAULT may be
empty, trains and dumps to ``ROOT/mindspore/NET-FAULT-LEVEL-TASK``; ``pytorch_nets`` ran before and left the weights.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops


class TwoLinear(nn.Cell):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self.linear1 = nn.Dense(16, 16)
        self.linear2 = nn.Dense(16, 8)

    def construct(self, x: Tensor) -> Tensor:
        return ops.relu(self.linear2(self.linear1(x)))


class LeNet(nn.Cell):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid", has_bias=True)
        # 26 wide, stride 2: "same" pads unevenly, (0, 1) where the twin pads (1, 1); shapes are equal.
        pad = {"pad_mode": "same"} if fault == "pad" else {"pad_mode": "pad", "padding": 1}
        self.conv2 = nn.Conv2d(6, 16, 3, stride=2, has_bias=True, **pad)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(16 * 6 * 6, 64)
        self.fc2 = nn.Dense(64, 10)

    def construct(self, x: Tensor) -> Tensor:
        x = self.relu(self.conv1(x))
        x = self.pool(self.relu(self.conv2(x)))
        return self.fc2(self.relu(self.fc1(self.flatten(x))))


class Block(nn.Cell):
    def __init__(self, channels: int, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.conv1 = nn.Conv2d(channels, channels, 3, pad_mode="pad", padding=1)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, pad_mode="pad", padding=1)
        self.bn2 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(x + self.bn2(self.conv2(y)) * self.scale)


class ResidualNet(nn.Cell):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1, has_bias=True)
        self.bn = nn.BatchNorm2d(8)
        self.blocks = nn.SequentialCell(Block(8, 0.5), Block(8, 1.0 if fault == "scale" else 0.5), Block(8, 0.5))
        self.head = nn.Dense(8, 10)

    def construct(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.bn(self.stem(x))).mean((2, 3)))


class Recurrent(nn.Cell):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 16, num_layers=2, batch_first=True)
        self.head = nn.Dense(16, 10)

    def construct(self, x: Tensor) -> Tensor:
        zeros = ops.zeros((2, x.shape[0], 16), ms.float32)
        sequence, _ = self.lstm(x, (zeros, zeros))
        return self.head(sequence[:, -1])


class Attention(nn.Cell):
    def __init__(self, width: int, heads: int, axis: int) -> None:
        super().__init__()
        self.heads, self.size, self.axis = heads, width // heads, axis
        self.q = nn.Dense(width, width)
        self.k = nn.Dense(width, width)
        self.v = nn.Dense(width, width)
        self.out = nn.Dense(width, width)

    def _split(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        return x.reshape(batch, length, self.heads, self.size).transpose(0, 2, 1, 3)

    def construct(self, x: Tensor) -> Tensor:
        q, k, v = self._split(self.q(x)), self._split(self.k(x)), self._split(self.v(x))
        weights = ops.softmax(ops.matmul(q, k.transpose(0, 1, 3, 2)) * self.size**-0.5, self.axis)
        return self.out(ops.matmul(weights, v).transpose(0, 2, 1, 3).reshape(x.shape))


class EncoderLayer(nn.Cell):
    def __init__(self, width: int, heads: int, fault: str) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm((width,), epsilon=1e-2 if fault == "eps" else 1e-5)
        self.attention = Attention(width, heads, -2 if fault == "axis" else -1)
        self.norm2 = nn.LayerNorm((width,), epsilon=1e-5)
        self.up = nn.Dense(width, 2 * width)
        self.act = nn.GELU(approximate=fault == "gelu")
        self.down = nn.Dense(2 * width, width)

    def construct(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(self.act(self.up(self.norm2(x))))


class Encoder(nn.Cell):
    """Four layers, 256 wide."""

    def __init__(self, fault: str, width: int = 256) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, width)
        self.position = Parameter(Tensor(np.zeros((12, width), np.float32)), name="position")
        self.layers = nn.CellList([EncoderLayer(width, 4, fault if i == 1 else "") for i in range(4)])
        self.norm = nn.LayerNorm((width,), epsilon=1e-5)
        self.head = nn.Dense(width, 10)

    def construct(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) + self.position
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(1))


NETS = {"two_linear": TwoLinear, "lenet": LeNet, "residual": ResidualNet, "lstm": Recurrent, "encoder": Encoder}


def make(name: str, fault: str, weights: Path) -> nn.Cell:
    """The net with the twin's weights; the fault ``transpose`` turns one square weight around."""
    net = NETS[name](fault)
    values = dict(np.load(weights))
    for parameter in net.get_parameters():
        value = values[parameter.name]
        if fault == "transpose" and parameter.name == "layers.1.attention.v.weight":
            value = value.T.copy()
        parameter.set_data(Tensor(value))
    return net.set_train()


def train(name: str, fault: str, level: str, task: str, dump_path: Path, weights: Path, steps: int) -> None:
    from msprobe_ms.mindspore import PrecisionDebugger

    net = make(name, fault, weights)
    values = np.load(weights)
    x, labels = Tensor(values["batch"]), Tensor(values["labels"].astype(np.int32))

    def forward(x: Any, labels: Any) -> Any:
        return nn.CrossEntropyLoss()(net(x), labels)

    step = ms.value_and_grad(forward, None, net.trainable_params())
    optimizer = nn.SGD(net.trainable_params(), learning_rate=0.1)
    debugger = PrecisionDebugger(task=task, level=level, dump_path=dump_path)
    for _ in range(steps):
        debugger.start(net)
        _, gradients = step(x, labels)
        debugger.stop()
        debugger.step()
        optimizer(gradients)


def main(root: Path, jobs: list[str]) -> None:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    ms.runtime.launch_blocking()
    for job in jobs:
        name, fault, level, task, steps = job.split(":")
        dump_path = root / "mindspore" / f"{name}-{fault}-{level}-{task}"
        train(name, fault, level, task, dump_path, root / f"{name}.npz", int(steps))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
