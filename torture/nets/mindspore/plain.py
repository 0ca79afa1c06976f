"""A deep perceptron and two recurrent taggers."""

from __future__ import annotations

import mindspore as ms
from mindspore import Tensor, nn, ops

WIDTH = 32


class GatedBlock(nn.Cell):
    """A residual block whose hidden values a softmax weighs."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.axis, self.residual, self.detached = 0.5, -1, True, False
        self.norm = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.fc1 = nn.Dense(WIDTH, WIDTH)
        self.act = nn.GELU(approximate=False)
        self.gate = nn.Dense(WIDTH, WIDTH)
        self.fc2 = nn.Dense(WIDTH, WIDTH)

    def construct(self, x: Tensor) -> Tensor:
        hidden = self.act(self.fc1(self.norm(x)))
        weights = ops.softmax(self.gate(x), self.axis) * WIDTH
        if self.detached:
            weights = ops.stop_gradient(weights)
        y = self.fc2(hidden * weights) * self.scale
        return x + y if self.residual else y


class Mlp(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.entry = nn.Dense(16, WIDTH)
        self.blocks = nn.CellList([GatedBlock() for _ in range(3)])
        self.norm = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.head = nn.Dense(WIDTH, 10)

    def construct(self, x: Tensor) -> Tensor:
        x = self.entry(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class DropoutMlp(Mlp):
    """Random near its end: what comes after differs in every run."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(p=0.2)

    def construct(self, x: Tensor) -> Tensor:
        x = self.entry(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.dropout(self.norm(x)))


class AttentionPool(nn.Cell):
    """The mean over time (axis 1) under weights of its own; steps where ``keep`` is 0 count nothing."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.axis, self.masked = 1, True
        self.score = nn.Dense(width, 1)

    def construct(self, x: Tensor, keep: Tensor) -> Tensor:
        scores = self.score(x)
        if self.masked:
            scores = scores + (keep.expand_dims(-1) - 1.0) * 1e4
        return (x * ops.softmax(scores, self.axis)).sum(1)


class Lstm(nn.Cell):
    """Tokens through two LSTM layers to a class."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.residual = 4.0, True
        self.embedding = nn.Embedding(30, 16)
        self.lstm = nn.LSTM(16, 16, num_layers=2, batch_first=True)
        self.norm = nn.LayerNorm((16,), epsilon=1e-5)
        self.pool = AttentionPool(16)
        self.proj = nn.Dense(16, 16)
        self.act = nn.GELU(approximate=False)
        self.head = nn.Dense(16, 10)

    def construct(self, ids: Tensor, keep: Tensor) -> Tensor:
        x = self.embedding(ids) * self.scale
        zeros = ops.zeros((2, x.shape[0], 16), ms.float32)
        y, _ = self.lstm(x, (zeros, zeros))
        y = self.norm(x + y if self.residual else y)
        return self.head(self.act(self.proj(self.pool(y, keep))))


class Gru(nn.Cell):
    """Measurements through a GRU in both directions to a class."""

    def __init__(self) -> None:
        super().__init__()
        self.state, self.residual = 0.0, True
        self.entry = nn.Dense(8, 16)
        self.gru = nn.GRU(16, 8, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm((16,), epsilon=1e-5)
        self.pool = AttentionPool(16)
        self.proj = nn.Dense(16, 16)
        self.act = nn.GELU(approximate=False)
        self.head = nn.Dense(16, 10)

    def construct(self, x: Tensor, keep: Tensor) -> Tensor:
        x = self.entry(x)
        y, _ = self.gru(x, ops.zeros((2, x.shape[0], 8), ms.float32) + self.state)
        y = self.norm(x + y if self.residual else y)
        return self.head(self.act(self.proj(self.pool(y, keep))))
