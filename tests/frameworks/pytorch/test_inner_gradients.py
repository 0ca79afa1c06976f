"""Gradients inside of functions are not what this tool records."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from recording import step_folder

from msprobe_ms.comparison.origin.explanations.inner_gradients import _records_inner_gradients
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.pytorch import record


@pytest.mark.parametrize("level", ["L1", "mix"])
def test_ours_are_not_such(dump_path: Path, level: str) -> None:
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(inplace=True), torch.nn.Flatten(),
        torch.nn.Linear(64, 8), torch.nn.Unflatten(1, (2, 4)),
        torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0),
    )  # fmt: skip
    other = torch.ones(2, 1, requires_grad=True)
    with record(net, level=level, dump_path=dump_path):
        y = net(torch.ones(2, 1, 6, 6)).sum(-1) * other
        y = torch.cat([y, torch.einsum("ij,kj->ik", y, y)], 1).clamp(min=0)
        y[:, 0] = 1.0
        torch.addmm(y, torch.ones(2, 3), torch.ones(3, 4), beta=2).expand(3, 2, 4).sum().backward()
    assert not _records_inner_gradients(read_dump(step_folder(dump_path)).entries.values())
