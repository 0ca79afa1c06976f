"""``compare --consistent_check``: a training beside an inference of the same weights, whose modules are others."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from msprobe_ms.cli.main import main
from msprobe_ms.pytorch import record

WIDTH = 8


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        return self.o_proj(functional.scaled_dot_product_attention(q, k, v, is_causal=True))


class Fused(nn.Module):
    """The same for tokens without a batch, as engines for inference have it."""

    def __init__(self, trained: Attention) -> None:
        super().__init__()
        self.qkv_proj, self.o_proj = nn.Linear(WIDTH, 3 * WIDTH), trained.o_proj
        parts = (trained.q_proj, trained.k_proj, trained.v_proj)
        self.qkv_proj.weight.data = torch.cat([part.weight.detach() for part in parts])
        self.qkv_proj.bias.data = torch.cat([part.bias.detach() for part in parts])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part[None] for part in self.qkv_proj(x).chunk(3, -1))
        return self.o_proj(functional.scaled_dot_product_attention(q, k, v, is_causal=True)[0])


class Layer(nn.Module):
    def __init__(self, attention: nn.Module) -> None:
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(WIDTH), attention

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.attention(self.norm(x))


class Model(nn.Module):
    def __init__(self, attentions: list[nn.Module]) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, WIDTH)
        self.layers = nn.ModuleList([Layer(each) for each in attentions])
        self.lm_head = nn.Linear(WIDTH, 20)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(x)


Compare = Callable[..., str]


def record_both(folder: Path, scale: float = 1.0) -> None:
    """Record a training and an inference whose last weight is ``scale`` times that of the training."""
    torch.manual_seed(0)
    training = Model([Attention() for _ in range(2)])
    inference = Model([Fused(layer.attention) for layer in training.layers])
    inference.load_state_dict({**inference.state_dict(), **training.state_dict()}, strict=False)
    tokens = torch.arange(5)
    wrapped = nn.Sequential(training)
    with record(wrapped, level="mix", task="tensor", dump_path=folder / "training"):
        functional.cross_entropy(wrapped(tokens[None])[0], tokens).backward()
    inference.lm_head.weight.data = inference.lm_head.weight * scale
    with record(inference, level="mix", task="tensor", dump_path=folder / "inference"), torch.no_grad():
        inference(tokens)


@pytest.fixture
def said_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Compare:
    def compare(*options: str) -> str:
        capsys.readouterr()
        paths = ["-tp", str(tmp_path / "inference"), "-gp", str(tmp_path / "training"), "-o", str(tmp_path / "out")]
        assert main(["compare", *paths, "--no-html", *options]) == 0
        return capsys.readouterr().out

    return compare


def test_only_what_both_have_is_compared(said_of: Compare, tmp_path: Path) -> None:
    record_both(tmp_path)
    assert said_of("-lm").startswith("INCOMPLETE: what was compared agrees, but")
    said = said_of("--consistent_check", "--backend", "fsdp")
    assert said.startswith("CONSISTENT: ") and "layers.0.attention.qkv_proj = " in said
    assert "backward" not in said and "paired: 12 of 13 modules (and only the outputs of 1 more)" in said


def test_what_the_inference_computes_otherwise_is_found(
    said_of: Compare, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    record_both(tmp_path, scale=1.1)
    caplog.set_level(logging.INFO, "msprobe_ms")
    said = said_of("--consistent_check", "-tensor_log")
    weight = "Module.lm_head.Linear.forward.0.parameters.weight"
    assert said.startswith("DIVERGENT") and weight in said
    logged = dict(record.getMessage().partition(": ")[::2] for record in caplog.records)
    assert logged["Module.lm_head.Linear.forward.0.parameters.bias"] == "agrees"
    assert logged[weight].startswith("origin, The error begins here: parameters.weight deviates by 0.1")
