"""The same weights in every format, each written by the library whose format it is."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import mindspore
import numpy as np
import torch
from mindspore import nn as ms_nn
from safetensors.torch import save_file
from torch import nn

SYNONYMS = {
    "embedding_table": "weight", "gamma": "weight", "beta": "bias",
    "moving_mean": "running_mean", "moving_variance": "running_var",
}  # fmt: skip


class TorchNet(nn.Module):
    """``head`` is tied to ``embed``."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 8)
        self.fc = nn.Linear(8, 8)
        self.bn = nn.BatchNorm1d(8)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 50, bias=False)
        self.head.weight = self.embed.weight


class MindSporeNet(ms_nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.embed = ms_nn.Embedding(50, 8)
        self.fc = ms_nn.Dense(8, 8)
        self.bn = ms_nn.BatchNorm1d(8)
        self.norm = ms_nn.LayerNorm((8,))


def torch_net() -> TorchNet:
    torch.manual_seed(3)
    net = TorchNet()
    with torch.no_grad():
        for tensor in net.state_dict().values():
            if tensor.is_floating_point():
                tensor.uniform_(0.5, 1.5)
    return net


def mindspore_net(state: Mapping[str, Any]) -> MindSporeNet:
    net = MindSporeNet()
    for name, parameter in net.parameters_and_names():
        owner, _, last = name.rpartition(".")
        parameter.set_data(mindspore.Tensor(state[f"{owner}.{SYNONYMS.get(last, last)}"].numpy()))
    return net


def write_all(folder: Path) -> None:
    """Nine parameters: ``net.ckpt`` and its kin of MindSpore, ``net.pt`` and its kin of PyTorch, safetensors, npz."""
    net = torch_net()
    state = net.state_dict()
    twin = mindspore_net(state)
    mindspore.save_checkpoint(twin, str(folder / "net.ckpt"))
    mindspore.save_checkpoint(twin, str(folder / "crc.ckpt"), crc_check=True)
    with mock.patch("mindspore.train.serialization.SLICE_SIZE", 1):  # in kB, instead of 512 MB
        mindspore.save_checkpoint(twin, str(folder / "sliced.ckpt"))
    for mode in ("AES-GCM", "AES-CBC"):
        mindspore.save_checkpoint(twin, str(folder / f"{mode}.ckpt"), enc_key=b"0123456789ABCDEF", enc_mode=mode)
    mindspore.save_checkpoint(twin, str(folder / "ms.safetensors"), format="safetensors")
    adam = ms_nn.Adam(twin.trainable_params())
    step = ms_nn.TrainOneStepCell(ms_nn.WithLossCell(twin, ms_nn.MSELoss()), adam)
    extra = {"epoch_num": 3, "note": "a text", "lr": 0.1}
    mindspore.save_checkpoint(step, str(folder / "training.ckpt"), append_dict=extra)
    torch.save(state, folder / "net.pt")
    torch.save(net, folder / "whole.pth")
    optimizer = torch.optim.Adam(net.parameters())
    sum(parameter.sum() for parameter in net.parameters()).backward()  # type: ignore[union-attr]
    optimizer.step()
    net.load_state_dict(torch.load(folder / "net.pt"))
    torch.save(
        {
            "args": argparse.Namespace(lr=0.1, path=Path("x")),
            "optimizer": optimizer.state_dict(),
            "model": {f"module.{name}": tensor for name, tensor in net.state_dict().items()},
            "rng": np.random.default_rng(1).bit_generator.state,
            "epoch": 3,
        },
        folder / "training.pt",
    )
    untied = {name: tensor for name, tensor in state.items() if name != "head.weight"}
    save_file(untied, folder / "net.safetensors")
    halves = {name: tensor.to(torch.bfloat16) for name, tensor in untied.items() if tensor.is_floating_point()}
    save_file(halves, folder / "bf16.safetensors")
    np.savez(folder / "net.npz", **{name: tensor.numpy() for name, tensor in state.items()})
    np.savez_compressed(folder / "compressed.npz", **{name: tensor.numpy() for name, tensor in state.items()})
