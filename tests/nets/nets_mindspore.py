"""The five nets the recording is measured on, with fixed weights and one small batch each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops

from torture.nets.mindspore.transformers import Encoder


class TwoLinear(nn.Cell):
    """Two linear layers and an activation."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Dense(16, 32)
        self.relu = nn.ReLU()
        self.fc2 = nn.Dense(32, 10)

    def construct(self, x: Tensor) -> Tensor:
        return self.fc2(self.relu(self.fc1(x)))


class LeNet(nn.Cell):
    """Convolutions whose activation and pooling cells are called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid", has_bias=True)
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(16 * 4 * 4, 120)
        self.fc2 = nn.Dense(120, 84)
        self.fc3 = nn.Dense(84, 10)

    def construct(self, x: Tensor) -> Tensor:
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.flatten(x)
        return self.fc3(self.relu(self.fc2(self.relu(self.fc1(x)))))


class ResidualBlock(nn.Cell):
    """conv-bn-relu-conv-bn beside an identity."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3)
        self.bn2 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(x + self.bn2(self.conv2(y)))


class ResidualNet(nn.Cell):
    """A residual convolutional net with batch normalisation (which writes its own statistics in place)."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3)
        self.blocks = nn.SequentialCell(ResidualBlock(8), ResidualBlock(8))
        self.head = nn.Dense(8, 10)

    def construct(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


class Recurrent(nn.Cell):
    """An LSTM: tuples in, nested tuples out."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 16, num_layers=1, batch_first=True)
        self.head = nn.Dense(16, 10)

    def construct(self, x: Tensor) -> Tensor:
        state = (ops.zeros((1, x.shape[0], 16), ms.float32), ops.zeros((1, x.shape[0], 16), ms.float32))
        sequence, (hidden, _) = self.lstm(x, state)
        return self.head(sequence[:, -1] + hidden[0])


def _values(shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    return generator.standard_normal(shape).astype(np.float32)


_BATCHES: dict[str, tuple[Callable[[], nn.Cell], Callable[[np.random.Generator], np.ndarray]]] = {
    "two_linear": (TwoLinear, lambda generator: _values((4, 16), generator)),
    "lenet": (LeNet, lambda generator: _values((2, 1, 28, 28), generator)),
    "residual": (ResidualNet, lambda generator: _values((2, 3, 8, 8), generator)),
    "lstm": (Recurrent, lambda generator: _values((2, 5, 8), generator)),
    "encoder": (partial(Encoder, 1, width=64), lambda generator: generator.integers(0, 50, (2, 12)).astype(np.int32)),
}

NETS = tuple(_BATCHES)


def set_weights(net: nn.Cell, generator: np.random.Generator) -> None:
    for parameter in net.get_parameters():
        if "moving" in parameter.name:  # running statistics stay 0 and 1
            continue
        value = _values(parameter.shape, generator) / np.sqrt(max(parameter.shape[-1], 1))
        parameter.set_data(Tensor(value + (1 if "gamma" in parameter.name else 0), ms.float32))


def make(name: str) -> tuple[nn.Cell, Tensor, Tensor]:
    """A net in training mode with the same weights on every call, a batch and its labels."""
    generator = np.random.default_rng(7)
    net_class, batch = _BATCHES[name]
    net = net_class()
    set_weights(net, generator)
    net.set_train()
    x = batch(generator)
    labels = generator.integers(0, 10, len(x)).astype(np.int32)
    return net, Tensor(x), Tensor(labels)


def loss(net: nn.Cell, x: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy; ``ops.cross_entropy`` itself is now and then off by a bit from run to run on CPU."""
    return cross_entropy(net(x), labels)


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    picked = ops.log_softmax(logits, -1) * ops.one_hot(labels, logits.shape[-1])
    return -picked.sum() / logits.shape[0]


def value_and_grad(net: nn.Cell, x: Tensor, labels: Tensor) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The loss and the gradient of every trainable parameter, by name."""

    def forward(x: Tensor, labels: Tensor) -> Tensor:
        return loss(net, x, labels)

    value, gradients = ms.value_and_grad(forward, None, net.trainable_params())(x, labels)
    names = [parameter.name for parameter in net.trainable_params()]
    return value.asnumpy().copy(), {n: g.asnumpy().copy() for n, g in zip(names, gradients, strict=True)}


def same_bits(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    """Whether gradients have the same names and bytes."""
    return first.keys() == second.keys() and all(first[name].tobytes() == second[name].tobytes() for name in first)
