"""One sketch of one tensor, whichever framework holds it, in whatever layout, and in parts."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
import torch
from recording import SKETCH, leaves, read_step, recording, same_sketch
from torch import nn as torch_nn

import msprobe_ms.arrays.statistics
import msprobe_ms.frameworks.interface.tensors
import msprobe_ms.frameworks.mindspore.arrays
import msprobe_ms.pytorch
from msprobe_ms.arrays.sketch import decode, distance, sketch
from msprobe_ms.arrays.statistics import summary

X = np.random.default_rng(8).normal(size=(6, 40, 48)).astype(np.float32)


class TheirNet(torch_nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.act = torch_nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(x.transpose(1, 2))


class OurNet(mindspore.nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.act = mindspore.nn.Identity()

    def construct(self, x: mindspore.Tensor) -> mindspore.Tensor:
        return self.act(x.swapaxes(1, 2))


def pytorch_leaf(folder: Path, **arguments: Any) -> dict[str, Any]:
    debugger = msprobe_ms.pytorch.PrecisionDebugger(dump_path=folder, level="L0", **arguments)
    net = TheirNet()
    debugger.start(net)
    net(torch.from_numpy(X))
    debugger.stop()
    debugger.step()
    leaf: dict[str, Any] = read_step(folder).data["Module.act.Identity.forward.0"]["output"][0]
    return leaf


def mindspore_leaf(folder: Path, x: Any = X, **keys: Any) -> dict[str, Any]:
    net = OurNet()
    with recording(net, folder, level="L0", **keys):
        net(mindspore.Tensor(x))
    leaf: dict[str, Any] = read_step(folder).forward("Cell.act.Identity")["output"][0]
    return leaf


def test_both_frameworks_record_the_sketch_of_the_elements_in_their_order(ms: Any, tmp_path: Path) -> None:
    ours, theirs = mindspore_leaf(tmp_path / "ours"), pytorch_leaf(tmp_path / "theirs")
    expected = summary(np.swapaxes(X, 1, 2))[1]
    assert list(ours)[-1] == list(theirs)[-1] == SKETCH
    assert ours[SKETCH] == theirs[SKETCH] == expected
    numbers, straight = decode(expected or ""), sketch(X)
    assert numbers is not None and straight is not None and distance(numbers, straight) > 0.5 * ours["Norm"]


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_sketches_can_be_left_out(ms: Any, tmp_path: Path, task: str) -> None:
    folder = tmp_path / "dump"
    leaf = mindspore_leaf(folder, task=task, sketch=False)
    assert SKETCH not in leaf and leaf["Norm"] > 0
    assert SKETCH in mindspore_leaf(tmp_path / "other", task=task)


def test_a_tensor_that_is_read_in_parts_has_the_same_sketch(
    ms: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = mindspore_leaf(tmp_path / "whole"), pytorch_leaf(tmp_path / "whole_of_pytorch")
    monkeypatch.setattr(msprobe_ms.arrays.statistics, "LARGE", 1000)
    for module in (msprobe_ms.frameworks.interface.tensors, msprobe_ms.frameworks.mindspore.arrays):
        monkeypatch.setattr(module, "parts", partial(msprobe_ms.arrays.statistics.parts, most=700))
    parts = mindspore_leaf(tmp_path / "parts"), pytorch_leaf(tmp_path / "parts_of_pytorch")
    assert all(same_sketch(one[SKETCH], other[SKETCH]) for one, other in zip(whole, parts, strict=True))


def test_what_is_not_finite_has_no_sketch(ms: Any, tmp_path: Path) -> None:
    x = X.copy()
    x[3, 2, 1] = np.nan
    assert SKETCH not in mindspore_leaf(tmp_path / "dump", x)


def test_every_tensor_has_one(ms: Any, tmp_path: Path) -> None:
    net = mindspore.nn.SequentialCell(mindspore.nn.Dense(48, 8), mindspore.nn.ReLU())
    with recording(net, tmp_path / "dump", level="mix"):
        mindspore.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())(mindspore.Tensor(X))
    found = list(leaves(read_step(tmp_path / "dump").data))
    assert found
    for place, leaf in found:
        numbers = decode(leaf[SKETCH])
        assert numbers is not None, place
        assert np.linalg.norm(numbers) == pytest.approx(abs(leaf["Norm"]), rel=1), place
