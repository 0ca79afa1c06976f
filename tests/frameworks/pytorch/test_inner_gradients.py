"""Dumps whose functions' backward is that of their last inner step: other tensors than the gradients of the inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from compare_parts import dump, tensor
from recording import step_folder

from msprobe_ms.comparison.origin.explanations.inner_gradients import _records_inner_gradients
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump, Item
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.pytorch import record

LINEAR, GELU = "Functional.linear.0", "Functional.gelu.0"


def torch_tensor(place: str, shape: tuple[int, ...], entry: str, seed: int = 0) -> Item:
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return tensor(place, values, entry, type="torch.Tensor", dtype="torch.float32")


def recorded(*gradients: tuple[int, ...], of_gelu: int = 7) -> Dump:
    """A linear function whose backward has gradients of these shapes, and a gelu."""
    forward, backward = f"{LINEAR}.forward", f"{LINEAR}.backward"
    return dump(
        [
            *(torch_tensor(f"input.{i}", shape, forward) for i, shape in enumerate([(2, 6), (3, 6), (3,)])),
            torch_tensor("output.0", (2, 3), forward),
            torch_tensor("input.0", (2, 3), f"{GELU}.forward"),
            torch_tensor("output.0", (2, 3), f"{GELU}.forward"),
            torch_tensor("input.0", (2, 3), f"{GELU}.backward"),
            torch_tensor("output.0", (2, 3), f"{GELU}.backward", seed=of_gelu),
            torch_tensor("input.0", (2, 3), backward),
            *(torch_tensor(f"output.{i}", shape, backward) for i, shape in enumerate(gradients)),
        ],
        "pytorch",
    )


RIGHT = recorded((2, 6), (3, 6), (3,))
LAST_NODE = recorded((3,), (2, 6), (6, 3))


def test_such_a_dump_blames_no_function() -> None:
    for target, golden in ((RIGHT, LAST_NODE), (LAST_NODE, RIGHT)):
        assert compare_dumps(target, golden, Options()).origins == []


def test_others_do() -> None:
    (origin,) = compare_dumps(RIGHT, recorded((2, 6), (3, 6), (3,), of_gelu=8), Options()).origins
    assert origin.target == "Functional.gelu.0.backward.output.0"


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


@pytest.mark.parametrize("shape", [(2, 3), (6,)])
def test_what_the_next_call_takes_in_on_both_sides_was_recorded_rightly(shape: tuple[int, ...]) -> None:
    """Both record the gelu's gradient that reaches the layer before it: it is judged, though a linear's is no such."""
    layer = "Module.fc.Linear.backward.0"

    def taken_by_the_layer(made: Dump, seed: int) -> Dump:
        before = [item for entry in made.entries.values() for item in entry.items]
        gradients = [torch_tensor(f"{state}.0", shape, layer, seed) for state in ("input", "output")]
        return dump([*before, *gradients], "pytorch")

    target = taken_by_the_layer(RIGHT, 7)
    golden = taken_by_the_layer(recorded((3,), (2, 6), (6, 3), of_gelu=8), 8)
    comparison = compare_dumps(target, golden, Options())
    assert [origin.target for origin in comparison.origins] == ["Functional.gelu.0.backward.output.0"]
    results = {row.target.name: row.result for row in comparison.rows if row.target}
    assert results[f"{layer}.input.0"] == "inherited"
