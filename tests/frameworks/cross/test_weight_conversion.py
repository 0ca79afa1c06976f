"""The function of docs/compare_weights.md that loads PyTorch weights into a MindSpore network does as the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
import torch
from mindspore import nn
from repository import ROOT

from msprobe_ms.cli.main import main

PAGE = (ROOT / "docs/compare_weights.md").read_text("utf-8")
FUNCTION, USE = re.findall(r"```python\n(.*?)```", PAGE, re.S)


class Body(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.norm1 = nn.Embedding(10, 4), nn.LayerNorm((4,))
        self.convolution, self.batch_norm = (
            nn.Conv1d(4, 6, 3, has_bias=True, pad_mode="pad", padding=1),
            nn.BatchNorm1d(6),
        )

    def construct(self, ids: Any) -> Any:
        x = self.norm1(self.embedding(ids)).transpose(0, 2, 1)
        return self.batch_norm(self.convolution(x).mean(-1))


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.head = Body(), nn.Dense(6, 3)

    def construct(self, ids: Any) -> Any:
        return self.head(self.encoder(ids))


class TorchBody(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.input_norm = torch.nn.Embedding(10, 4), torch.nn.LayerNorm(4)
        self.convolution, self.batch_norm = torch.nn.Conv1d(4, 6, 3, padding=1), torch.nn.BatchNorm1d(6)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.input_norm(self.embedding(ids)).transpose(1, 2)
        return self.batch_norm(self.convolution(x).mean(-1))


class TorchNet(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = TorchBody(), torch.nn.Linear(6, 3)
        for tensor in self.state_dict().values():
            if tensor.is_floating_point():
                tensor.copy_(torch.rand_like(tensor) + 0.5)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(ids))


def names() -> dict[str, Any]:
    found: dict[str, Any] = {"torch": torch}
    exec(compile(FUNCTION, "compare_weights.md", "exec"), found)
    return found


def test_both_networks_compute_the_same_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    net, torch_net, ids = Net(), TorchNet(), np.arange(6).reshape(2, 3)
    exec(compile(USE, "compare_weights.md", "exec"), {**names(), "net": net, "torch_net": torch_net})
    net.set_train(False), torch_net.eval()
    ours = net(mindspore.Tensor(ids, mindspore.int32)).asnumpy()
    np.testing.assert_allclose(ours, torch_net(torch.from_numpy(ids)).detach().numpy(), rtol=1e-3, atol=1e-4)
    assert main(["compare_weights", "net.ckpt", "model.pt", "--exit-code"]) == 0
    assert "CONSISTENT: all parameters are equal; " in capsys.readouterr().out


def test_what_is_left_over_or_transposed_is_an_error() -> None:
    load, state = names()["load_pytorch_weights"], TorchNet().state_dict()
    with pytest.raises(ValueError, match=r"no weights for .*head\.bias"):
        load(Net(), {name: tensor for name, tensor in state.items() if name != "head.bias"})
    with pytest.raises(ValueError, match=r"not used: .*more"):
        load(Net(), {**state, "more": torch.ones(1)})
    with pytest.raises(ValueError, match=r"head\.weight .*transpose it"):
        load(Net(), {**state, "head.weight": torch.ones(6, 3)})
