"""The same transformer in PyTorch, with other names. It also made the golden dump in samples/golden.

python samples/net_pytorch.py        # needs torch; rewrites samples/golden and samples/first_weights.npz
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

HERE = Path(__file__).parent


class SelfAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.size = width // heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.dense = nn.Linear(width, width)

    def split(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        return x.reshape(batch, length, self.heads, self.size).permute(0, 2, 1, 3)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
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


class Reverser(nn.Module):
    """Token ids ``[batch, length]`` to logits ``[batch, length, tokens]``."""

    def __init__(self, tokens: int = 32, length: int = 12, width: int = 64) -> None:
        super().__init__()
        self.tokens = nn.Embedding(tokens, width)
        self.position = nn.Parameter(torch.randn(length, width) * 0.1)
        self.blocks = nn.ModuleList([TransformerLayer(width, 4) for _ in range(3)])
        self.final_norm = nn.LayerNorm(width)
        self.classifier = nn.Linear(width, tokens)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.position
        for block in self.blocks:
            x = block(x)
        return self.classifier(self.final_norm(x))


#: PyTorch names → MindSpore names, part by part.
RENAMES = {
    "tokens": "embedding", "blocks": "layers", "final_norm": "norm", "classifier": "head", "input_norm": "norm1",
    "self_attention": "attention", "output_norm": "norm2", "expand": "up", "contract": "down", "query": "q_proj",
    "key": "k_proj", "value": "v_proj", "dense": "out_proj",
}  # fmt: skip


def mindspore_name(name: str) -> str:
    *path, leaf = (RENAMES.get(part, part) for part in name.split("."))
    if path and path[-1] == "embedding":
        leaf = "embedding_table"
    elif path and path[-1].startswith("norm"):
        leaf = {"weight": "gamma", "bias": "beta"}[leaf]
    return ".".join([*path, leaf])


def batches(count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return sequences and the sequences expected of them, the same on both sides."""
    generator = np.random.default_rng(5)
    sequences = [generator.integers(0, 32, (16, 12)).astype(np.int32) for _ in range(count)]
    return [(sequence, sequence[:, ::-1].copy()) for sequence in sequences]


def main() -> None:
    from msprobe_ms.pytorch import PrecisionDebugger

    torch.manual_seed(0)
    net = Reverser()
    weights = {mindspore_name(name): value.detach().numpy() for name, value in net.state_dict().items()}
    np.savez_compressed(HERE / "first_weights.npz", **weights)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    debugger = PrecisionDebugger(task="statistics", level="L0", dump_path=HERE / "golden", step=[0])
    for ids, expected in batches(3):
        debugger.start(net, rank_id=0)
        optimizer.zero_grad()
        logits = net(torch.from_numpy(ids).long())
        loss = F.cross_entropy(logits.reshape(-1, 32), torch.from_numpy(expected).long().reshape(-1))
        loss.backward()
        debugger.stop()
        debugger.step()
        optimizer.step()
        print(f"loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
