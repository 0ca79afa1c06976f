"""A 4-layer transformer encoder: d=256, 64 tokens of a vocabulary of 1000."""

from __future__ import annotations

import numpy as np
from mindspore import Parameter, Tensor, nn, ops


class Attention(nn.Cell):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.size = width // heads
        self.q_proj = nn.Dense(width, width)
        self.k_proj = nn.Dense(width, width)
        self.v_proj = nn.Dense(width, width)
        self.out_proj = nn.Dense(width, width)

    def split(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        return x.reshape(batch, length, self.heads, self.size).transpose(0, 2, 1, 3)

    def construct(self, x: Tensor) -> Tensor:
        q, k, v = self.split(self.q_proj(x)), self.split(self.k_proj(x)), self.split(self.v_proj(x))
        weights = ops.softmax(ops.matmul(q, k.transpose(0, 1, 3, 2)) * self.size**-0.5, -1)
        return self.out_proj(ops.matmul(weights, v).transpose(0, 2, 1, 3).reshape(x.shape))


class EncoderLayer(nn.Cell):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm((width,))
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm((width,))
        self.up = nn.Dense(width, 4 * width)
        self.act = nn.GELU(approximate=False)
        self.down = nn.Dense(4 * width, width)

    def construct(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(self.act(self.up(self.norm2(x))))


class Encoder(nn.Cell):
    def __init__(self, tokens: int = 1000, width: int = 256, length: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, width)
        self.position = Parameter(Tensor(np.zeros((length, width), np.float32)), name="position")
        self.layers = nn.CellList([EncoderLayer(width, 4) for _ in range(4)])
        self.norm = nn.LayerNorm((width,))
        self.head = nn.Dense(width, tokens)

    def construct(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) + self.position
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))
