"""A deep perceptron and two recurrent taggers."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torture.nets.pytorch.module import Module

WIDTH = 32


class GatedBlock(Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.fc1 = nn.Linear(WIDTH, WIDTH)
        self.act = nn.GELU()
        self.gate = nn.Linear(WIDTH, WIDTH)
        self.fc2 = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.act(self.fc1(self.norm(x)))
        weights = F.softmax(self.gate(x), -1) * WIDTH
        return x + self.fc2(hidden * weights) * 0.5


class Mlp(Module):
    def __init__(self) -> None:
        super().__init__()
        self.entry = nn.Linear(16, WIDTH)
        self.blocks = nn.ModuleList([GatedBlock() for _ in range(3)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.entry(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class DropoutMlp(Mlp):
    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.2)

    def forward(self, x: Tensor) -> Tensor:
        x = self.entry(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.dropout(self.norm(x)))


class AttentionPool(Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, 1)

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        scores = self.score(x) + (keep.unsqueeze(-1) - 1.0) * 1e4
        return (x * F.softmax(scores, 1)).sum(1)


class Lstm(Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(30, 16)
        self.lstm = nn.LSTM(16, 16, num_layers=2, batch_first=True)
        self.norm = nn.LayerNorm(16)
        self.pool = AttentionPool(16)
        self.proj = nn.Linear(16, 16)
        self.act = nn.GELU()
        self.head = nn.Linear(16, 10)

    def forward(self, ids: Tensor, keep: Tensor) -> Tensor:
        x = self.embedding(ids) * 4.0
        zeros = torch.zeros(2, x.shape[0], 16)
        y, _ = self.lstm(x, (zeros, zeros))
        return self.head(self.act(self.proj(self.pool(self.norm(x + y), keep))))


class Gru(Module):
    def __init__(self) -> None:
        super().__init__()
        self.entry = nn.Linear(8, 16)
        self.gru = nn.GRU(16, 8, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm(16)
        self.pool = AttentionPool(16)
        self.proj = nn.Linear(16, 16)
        self.act = nn.GELU()
        self.head = nn.Linear(16, 10)

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        x = self.entry(x)
        y, _ = self.gru(x, torch.zeros(2, x.shape[0], 8))
        return self.head(self.act(self.proj(self.pool(self.norm(x + y), keep))))
