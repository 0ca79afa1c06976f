"""Encoder, GPT, LLaMA, a mixture of experts and a vision transformer, small."""

from __future__ import annotations

import math

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

WIDTH, HEADS, LENGTH, TOKENS = 32, 4, 12, 50


def _zeros(*shape: int) -> Tensor:
    return Tensor(np.zeros(shape, np.float32))


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(batch, length, heads · size) → (batch, heads, length, size)."""
    return x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(0, 2, 1, 3)


def join_heads(x: Tensor) -> Tensor:
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def future(length: int, ahead: int) -> Tensor:
    """True where a position lies more than ``ahead`` beyond its own."""
    return ops.triu(ops.ones((length, length), ms.float32), 1 + ahead) > 0


class Attention(nn.Cell):
    """Of every position to those ``keep`` (batch, length) leaves; ``causal``: to those before it."""

    def __init__(self, causal: bool = False, width: int = WIDTH) -> None:
        super().__init__()
        self.scale, self.axis, self.masked, self.causal, self.ahead = (width // HEADS) ** -0.5, -1, True, causal, 0
        self.detached = False
        self.q = nn.Dense(width, width)
        self.k = nn.Dense(width, width)
        self.v = nn.Dense(width, width)
        self.out = nn.Dense(width, width)

    def construct(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        q, k, v = split_heads(self.q(x), HEADS), split_heads(self.k(x), HEADS), split_heads(self.v(x), HEADS)
        if self.detached:
            k = ops.stop_gradient(k)
        scores = ops.matmul(q, k.transpose(0, 1, 3, 2)) * self.scale
        if keep is not None and self.masked:
            scores = scores + ((keep - 1.0) * 1e4).reshape(x.shape[0], 1, 1, x.shape[1])
        if self.causal:
            scores = scores.masked_fill(future(x.shape[1], self.ahead), -1e9)
        return self.out(join_heads(ops.matmul(ops.softmax(scores, self.axis), v)))


class EncoderLayer(nn.Cell):
    """Norms before what they norm, or with ``post`` after the sum."""

    def __init__(self, post: bool = False, width: int = WIDTH, factor: int = 2) -> None:
        super().__init__()
        self.post, self.residual = post, True
        self.norm1 = nn.LayerNorm((width,), epsilon=1e-5)
        self.attention = Attention(width=width)
        self.norm2 = nn.LayerNorm((width,), epsilon=1e-5)
        self.up = nn.Dense(width, factor * width)
        self.act = nn.GELU(approximate=False)
        self.down = nn.Dense(factor * width, width)

    def construct(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        y = self.attention(x if self.post else self.norm1(x), keep)
        x = x + y if self.residual else y
        if self.post:
            x = self.norm1(x)
        y = x + self.down(self.act(self.up(x if self.post else self.norm2(x))))
        return self.norm2(y) if self.post else y


class Encoder(nn.Cell):
    """A class for each sequence of tokens, some of which are padding; not ``pooled``, for each token."""

    def __init__(
        self, layers: int = 3, post: bool = False, *, width: int = WIDTH, factor: int = 2, length: int = LENGTH,
        tokens: int = TOKENS, classes: int = 10, pooled: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.pooled = pooled
        self.embedding = nn.Embedding(tokens, width)
        self.position = Parameter(_zeros(length, width), name="position")
        self.layers = nn.CellList([EncoderLayer(post, width, factor) for _ in range(layers)])
        self.norm = nn.LayerNorm((width,), epsilon=1e-5)
        self.head = nn.Dense(width, classes)

    def construct(self, ids: Tensor, keep: Tensor | None = None) -> Tensor:
        x = self.embedding(ids) + self.position
        for layer in self.layers:
            x = layer(x, keep)
        x = self.norm(x)
        return self.head(x.mean(1) if self.pooled else x)


class CompiledEncoder(Encoder):
    """Two layers with the norms after the sums; trained in GRAPH_MODE."""

    def __init__(self) -> None:
        super().__init__(layers=2, post=True)


class FusedAttention(nn.Cell):
    """Causal, with one projection for queries, keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.axis, self.ahead, self.keys_first = (WIDTH // HEADS) ** -0.5, -1, 0, False
        self.c_attn = nn.Dense(WIDTH, 3 * WIDTH)
        self.c_proj = nn.Dense(WIDTH, WIDTH)

    def construct(self, x: Tensor) -> Tensor:
        q, k, v = ops.split(self.c_attn(x), WIDTH, -1)
        if self.keys_first:
            q, k = k, q
        q, k, v = split_heads(q, HEADS), split_heads(k, HEADS), split_heads(v, HEADS)
        scores = ops.matmul(q, k.transpose(0, 1, 3, 2)) * self.scale
        scores = scores.masked_fill(future(x.shape[1], self.ahead), -1e9)
        return self.c_proj(join_heads(ops.matmul(ops.softmax(scores, self.axis), v)))


class GptBlock(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.residual = True
        self.ln_1 = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.attn = FusedAttention()
        self.ln_2 = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.c_fc = nn.Dense(WIDTH, 4 * WIDTH)
        self.act = nn.GELU(approximate=True)
        self.c_proj = nn.Dense(4 * WIDTH, WIDTH)

    def construct(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        y = self.c_proj(self.act(self.c_fc(self.ln_2(x))))
        return x + y if self.residual else y


class Gpt(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.wte = nn.Embedding(TOKENS, WIDTH)
        self.wpe = nn.Embedding(LENGTH, WIDTH)
        self.h = nn.CellList([GptBlock() for _ in range(3)])
        self.ln_f = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.lm_head = nn.Dense(WIDTH, TOKENS, has_bias=False)

    def construct(self, ids: Tensor) -> Tensor:
        x = self.wte(ids) + self.wpe(ops.arange(ids.shape[1]))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x)).reshape(-1, TOKENS)


class RMSNorm(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.eps = 1e-6
        self.weight = Parameter(_zeros(WIDTH), name="weight")

    def construct(self, x: Tensor) -> Tensor:
        return x * ops.rsqrt(x.square().mean(-1, keep_dims=True) + self.eps) * self.weight


class GroupedAttention(nn.Cell):
    """Causal, with rotary positions; two heads of queries share one of keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.axis, self.ahead = (WIDTH // HEADS) ** -0.5, -1, 0
        self.base, self.interleaved, self.tiled = 10000.0, False, False
        self.q = nn.Dense(WIDTH, WIDTH, has_bias=False)
        self.k = nn.Dense(WIDTH, WIDTH // 2, has_bias=False)
        self.v = nn.Dense(WIDTH, WIDTH // 2, has_bias=False)
        self.o = nn.Dense(WIDTH, WIDTH, has_bias=False)

    def rotate(self, x: Tensor) -> Tensor:
        half = x.shape[-1] // 2
        steps = ops.arange(half).astype(ms.float32) / half
        angles = ops.outer(ops.arange(x.shape[2]).astype(ms.float32), ops.exp(steps * -math.log(self.base)))
        if self.interleaved:
            angles = ops.repeat_interleave(angles, 2, -1)
            turned = ops.stack((-x[..., 1::2], x[..., ::2]), -1).reshape(x.shape)
        else:
            angles = ops.cat((angles, angles), -1)
            turned = ops.cat((-x[..., half:], x[..., :half]), -1)
        return x * ops.cos(angles) + turned * ops.sin(angles)

    def shared(self, x: Tensor) -> Tensor:
        """Each head of keys or values for its two heads of queries."""
        return ops.cat((x, x), 1) if self.tiled else ops.repeat_interleave(x, 2, 1)

    def construct(self, x: Tensor) -> Tensor:
        q, k = self.rotate(split_heads(self.q(x), HEADS)), self.rotate(split_heads(self.k(x), HEADS // 2))
        k, v = self.shared(k), self.shared(split_heads(self.v(x), HEADS // 2))
        scores = ops.matmul(q, k.transpose(0, 1, 3, 2)) * self.scale
        scores = scores.masked_fill(future(x.shape[1], self.ahead), -1e9)
        return self.o(join_heads(ops.matmul(ops.softmax(scores, self.axis), v)))


class SwiGlu(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.swapped = False
        self.gate = nn.Dense(WIDTH, 3 * WIDTH, has_bias=False)
        self.up = nn.Dense(WIDTH, 3 * WIDTH, has_bias=False)
        self.act = nn.SiLU()
        self.down = nn.Dense(3 * WIDTH, WIDTH, has_bias=False)

    def construct(self, x: Tensor) -> Tensor:
        gate, up = self.gate(x), self.up(x)
        return self.down(self.act(up) * gate if self.swapped else self.act(gate) * up)


class LlamaLayer(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.residual = True
        self.input_norm = RMSNorm()
        self.attention = GroupedAttention()
        self.post_norm = RMSNorm()
        self.mlp = SwiGlu()

    def construct(self, x: Tensor) -> Tensor:
        y = self.attention(self.input_norm(x))
        x = x + y if self.residual else y
        return x + self.mlp(self.post_norm(x))


class Llama(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(TOKENS, WIDTH)
        self.layers = nn.CellList([LlamaLayer() for _ in range(3)])
        self.norm = RMSNorm()
        self.lm_head = nn.Dense(WIDTH, TOKENS, has_bias=False)

    def construct(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.norm(x)).reshape(-1, TOKENS)


class Expert(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Dense(WIDTH, WIDTH)
        self.act = nn.GELU(approximate=False)
        self.down = nn.Dense(WIDTH, WIDTH)

    def construct(self, x: Tensor) -> Tensor:
        return self.down(self.act(self.up(x)))


class Experts(nn.Cell):
    """Two of four experts for each token; all of them compute, those not chosen count nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.chosen, self.axis, self.normalised, self.scale = 2, -1, True, 1.0
        self.router = nn.Dense(WIDTH, 4, has_bias=False)
        self.experts = nn.CellList([Expert() for _ in range(4)])

    def construct(self, x: Tensor) -> Tensor:
        shares = ops.softmax(self.router(x), self.axis)
        largest, _ = ops.topk(shares, self.chosen, -1)
        shares = shares * (shares >= largest[..., -1:]).astype(ms.float32)
        if self.normalised:
            shares = shares / shares.sum(-1, keepdims=True)
        total = ops.zeros_like(x)
        for index, expert in enumerate(self.experts):
            total = total + shares[..., index : index + 1] * expert(x)
        return total * self.scale


class MoeLayer(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.residual = True
        self.norm1 = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.attention = Attention(causal=True)
        self.norm2 = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.moe = Experts()

    def construct(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        y = self.moe(self.norm2(x))
        return x + y if self.residual else y


class Moe(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.layers = nn.CellList([MoeLayer() for _ in range(2)])
        self.norm = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.head = nn.Dense(WIDTH, TOKENS)

    def construct(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)).reshape(-1, TOKENS)


class Vit(nn.Cell):
    """A class for each 16 × 16 image, from patches of 4 × 4."""

    def __init__(self) -> None:
        super().__init__()
        self.columns_first, self.averaged = False, False
        self.patch = nn.Conv2d(3, WIDTH, 4, stride=4, pad_mode="valid", has_bias=True)
        self.cls = Parameter(_zeros(1, 1, WIDTH), name="cls")
        self.position = Parameter(_zeros(1, 17, WIDTH), name="position")
        self.layers = nn.CellList([EncoderLayer() for _ in range(3)])
        self.norm = nn.LayerNorm((WIDTH,), epsilon=1e-5)
        self.head = nn.Dense(WIDTH, 10)

    def construct(self, x: Tensor) -> Tensor:
        x = self.patch(x)
        if self.columns_first:
            x = x.transpose(0, 1, 3, 2)
        x = x.reshape(x.shape[0], WIDTH, -1).transpose(0, 2, 1)
        x = ops.cat((ops.broadcast_to(self.cls, (x.shape[0], 1, WIDTH)), x), 1) + self.position
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        return self.head(x.mean(1) if self.averaged else x[:, 0])
