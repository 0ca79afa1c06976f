"""Encoder, GPT, LLaMA, a mixture of experts and a vision transformer, small."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torture.nets.pytorch.module import Module

WIDTH, HEADS, LENGTH, TOKENS = 32, 4, 12, 50


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(batch, length, heads · size) → (batch, heads, length, size)."""
    return x.reshape(x.shape[0], x.shape[1], heads, -1).permute(0, 2, 1, 3)


def join_heads(x: Tensor) -> Tensor:
    return x.permute(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def future(length: int) -> Tensor:
    """True where a position lies beyond its own."""
    return torch.triu(torch.ones(length, length), 1) > 0


class Attention(Module):
    def __init__(self, causal: bool = False) -> None:
        super().__init__()
        self.causal = causal
        self.q = nn.Linear(WIDTH, WIDTH)
        self.k = nn.Linear(WIDTH, WIDTH)
        self.v = nn.Linear(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def queries_keys_values(self, x: Tensor) -> tuple[Tensor, ...]:
        return self.q(x), self.k(x), self.v(x)

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        q, k, v = (split_heads(each, HEADS) for each in self.queries_keys_values(x))
        scores = torch.matmul(q, k.permute(0, 1, 3, 2)) * (WIDTH // HEADS) ** -0.5
        if keep is not None:
            scores = scores + ((keep - 1.0) * 1e4).reshape(x.shape[0], 1, 1, x.shape[1])
        if self.causal:
            scores = scores.masked_fill(future(x.shape[1]), -1e9)
        return self.out(join_heads(torch.matmul(F.softmax(scores, -1), v)))


class EncoderLayer(Module):
    def __init__(self, post: bool = False) -> None:
        super().__init__()
        self.post = post
        self.norm1 = nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.act = nn.GELU()
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        x = x + self.attention(x if self.post else self.norm1(x), keep)
        if self.post:
            x = self.norm1(x)
        y = x + self.down(self.act(self.up(x if self.post else self.norm2(x))))
        return self.norm2(y) if self.post else y


class Encoder(Module):
    def __init__(self, layers: int = 3, post: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.position = nn.Parameter(torch.zeros(LENGTH, WIDTH))
        self.layers = nn.ModuleList([EncoderLayer(post) for _ in range(layers)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, ids: Tensor, keep: Tensor) -> Tensor:
        x = self.embedding(ids) + self.position
        for layer in self.layers:
            x = layer(x, keep)
        return self.head(self.norm(x).mean(1))


class CompiledEncoder(Encoder):
    """The twin of what MindSpore compiles; here it is as dynamic as the others."""

    def __init__(self) -> None:
        super().__init__(layers=2, post=True)


class FusedAttention(Module):
    def __init__(self) -> None:
        super().__init__()
        self.c_attn = nn.Linear(WIDTH, 3 * WIDTH)
        self.c_proj = nn.Linear(WIDTH, WIDTH)

    def queries_keys_values(self, x: Tensor) -> tuple[Tensor, ...]:
        return torch.split(self.c_attn(x), WIDTH, -1)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (split_heads(each, HEADS) for each in self.queries_keys_values(x))
        scores = torch.matmul(q, k.permute(0, 1, 3, 2)) * (WIDTH // HEADS) ** -0.5
        scores = scores.masked_fill(future(x.shape[1]), -1e9)
        return self.c_proj(join_heads(torch.matmul(F.softmax(scores, -1), v)))


class GptBlock(Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(WIDTH)
        self.attn = FusedAttention()
        self.ln_2 = nn.LayerNorm(WIDTH)
        self.c_fc = nn.Linear(WIDTH, 4 * WIDTH)
        self.act = nn.GELU(approximate="tanh")
        self.c_proj = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.c_proj(self.act(self.c_fc(self.ln_2(x))))


class Gpt(Module):
    def __init__(self) -> None:
        super().__init__()
        self.wte = nn.Embedding(TOKENS, WIDTH)
        self.wpe = nn.Embedding(LENGTH, WIDTH)
        self.h = nn.ModuleList([GptBlock() for _ in range(3)])
        self.ln_f = nn.LayerNorm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, TOKENS, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x)).reshape(-1, TOKENS)


class RMSNorm(Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


class GroupedAttention(Module):
    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Linear(WIDTH, WIDTH, bias=False)
        self.k = nn.Linear(WIDTH, WIDTH // 2, bias=False)
        self.v = nn.Linear(WIDTH, WIDTH // 2, bias=False)
        self.o = nn.Linear(WIDTH, WIDTH, bias=False)

    def queries_keys_values(self, x: Tensor) -> tuple[Tensor, ...]:
        return self.q(x), self.k(x), self.v(x)

    def rotate(self, x: Tensor) -> Tensor:
        half = x.shape[-1] // 2
        steps = torch.arange(half).float() / half
        angles = torch.outer(torch.arange(x.shape[2]).float(), torch.exp(steps * -math.log(10000.0)))
        angles = torch.cat((angles, angles), -1)
        turned = torch.cat((-x[..., half:], x[..., :half]), -1)
        return x * torch.cos(angles) + turned * torch.sin(angles)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.queries_keys_values(x)
        q, k = self.rotate(split_heads(q, HEADS)), self.rotate(split_heads(k, HEADS // 2))
        k, v = torch.repeat_interleave(k, 2, 1), torch.repeat_interleave(split_heads(v, HEADS // 2), 2, 1)
        scores = torch.matmul(q, k.permute(0, 1, 3, 2)) * (WIDTH // HEADS) ** -0.5
        scores = scores.masked_fill(future(x.shape[1]), -1e9)
        return self.o(join_heads(torch.matmul(F.softmax(scores, -1), v)))


class SwiGlu(Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.act = nn.SiLU()
        self.down = nn.Linear(3 * WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate(x), self.up(x)
        return self.down(self.act(gate) * up)


class LlamaLayer(Module):
    def __init__(self) -> None:
        super().__init__()
        self.input_norm = RMSNorm()
        self.attention = GroupedAttention()
        self.post_norm = RMSNorm()
        self.mlp = SwiGlu()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.input_norm(x))
        return x + self.mlp(self.post_norm(x))


class Llama(Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(TOKENS, WIDTH)
        self.layers = nn.ModuleList([LlamaLayer() for _ in range(3)])
        self.norm = RMSNorm()
        self.lm_head = nn.Linear(WIDTH, TOKENS, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.norm(x)).reshape(-1, TOKENS)


class Expert(Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDTH, WIDTH)
        self.act = nn.GELU()
        self.down = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.act(self.up(x)))


class Experts(Module):
    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, 4, bias=False)
        self.experts = nn.ModuleList([Expert() for _ in range(4)])

    def forward(self, x: Tensor) -> Tensor:
        shares = F.softmax(self.router(x), -1)
        largest, _ = torch.topk(shares, 2, -1)
        shares = shares * (shares >= largest[..., -1:]).float()
        shares = shares / shares.sum(-1, keepdim=True)
        total = torch.zeros_like(x)
        for index, expert in enumerate(self.experts):
            total = total + shares[..., index : index + 1] * expert(x)
        return total * 1.0


class MoeLayer(Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.attention = Attention(causal=True)
        self.norm2 = nn.LayerNorm(WIDTH)
        self.moe = Experts()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.moe(self.norm2(x))


class Moe(Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, WIDTH)
        self.layers = nn.ModuleList([MoeLayer() for _ in range(2)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, TOKENS)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)).reshape(-1, TOKENS)


class Vit(Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, WIDTH, 4, stride=4)
        self.cls = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.position = nn.Parameter(torch.zeros(1, 17, WIDTH))
        self.layers = nn.ModuleList([EncoderLayer() for _ in range(3)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch(x)
        x = x.reshape(x.shape[0], WIDTH, -1).permute(0, 2, 1)
        x = torch.cat((self.cls.expand(x.shape[0], 1, WIDTH), x), 1) + self.position
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)[:, 0])
