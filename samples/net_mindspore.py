"""A small transformer that learns to reverse a sequence, in MindSpore."""

from __future__ import annotations

import mindspore as ms
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
    def __init__(self, width: int, heads: int, epsilon: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm((width,), epsilon=epsilon)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm((width,), epsilon=1e-5)
        self.up = nn.Dense(width, 2 * width)
        self.act = nn.GELU(approximate=False)
        self.down = nn.Dense(2 * width, width)

    def construct(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(self.act(self.up(self.norm2(x))))


class Reverser(nn.Cell):
    """Token ids ``[batch, length]`` to logits ``[batch, length, tokens]``."""

    def __init__(self, tokens: int = 32, length: int = 12, width: int = 64, faulty_layer: int | None = None) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, width)
        self.position = Parameter(Tensor(np.zeros((length, width), np.float32)), name="position")
        # The fault that the demo plants: one LayerNorm has 1e-2, the others 1e-5.
        epsilons = [1e-2 if index == faulty_layer else 1e-5 for index in range(3)]
        self.layers = nn.CellList([EncoderLayer(width, 4, epsilon) for epsilon in epsilons])
        self.norm = nn.LayerNorm((width,), epsilon=1e-5)
        self.head = nn.Dense(width, tokens)

    def construct(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) + self.position
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def load(net: nn.Cell, weights: dict[str, np.ndarray]) -> nn.Cell:
    """Set the first weights of the network, by parameter name."""
    for parameter in net.get_parameters():
        parameter.set_data(Tensor(weights[parameter.name], ms.float32))
    return net
