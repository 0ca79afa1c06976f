"""The same selection on PyTorch; and the same calls on both frameworks, where a coarse pass is to be compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore
import numpy as np
import pytest
import torch
from recording import read_step, recording, write_config
from torch.utils.checkpoint import checkpoint

from msprobe_ms.dump.names import PARAMETERS_GRAD, parse_entry
from msprobe_ms.pytorch import PrecisionDebugger


class Layer(torch.nn.Module):
    def __init__(self, wide: int) -> None:
        super().__init__()
        self.norm, self.fc, self.act = torch.nn.LayerNorm(wide), torch.nn.Linear(wide, wide), torch.nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(self.fc(self.norm(x))) + x


class Net(torch.nn.Module):
    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([Layer(4) for _ in range(layers)])
        self.head = torch.nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return torch.relu(self.head(x))


def record(dump_path: Path, net: torch.nn.Module | None = None, **keys: Any) -> list[str]:
    net = Net(3) if net is None else net
    debugger = PrecisionDebugger(write_config(dump_path, **keys))
    debugger.start(net)
    net(torch.ones(1, 4, requires_grad=True)).sum().backward()
    debugger.stop()
    debugger.step()
    return list(read_step(dump_path).data)


@pytest.mark.parametrize(
    ("level", "patterns", "expected"),
    [
        ("L0", ["Module.layers.*.norm.*.forward"], [f"Module.layers.{n}.norm.LayerNorm.forward.0" for n in range(3)]),
        ("L1", ["class:ReLU"],
         [*(f"Functional.relu.{n}.forward" for n in range(3)), "Torch.relu.0.forward", "Torch.relu.0.backward",
          *(f"Functional.relu.{n}.backward" for n in (2, 1, 0))]),
        ("L1", ["name-regex((Torch|Tensor)[.]_?.+[_u][.].+forward)"],
         [*(f"Tensor.__add__.{n}.forward" for n in range(3)), "Torch.relu.0.forward"]),
        ("mix", ["Module.layers.2*.forward"],
         ["Functional.layer_norm.2.forward", "Module.layers.2.norm.LayerNorm.forward.0", "Functional.linear.2.forward",
          "Module.layers.2.fc.Linear.forward.0", "Functional.relu.2.forward", "Module.layers.2.act.ReLU.forward.0",
          "Tensor.__add__.2.forward", "Module.layers.2.Layer.forward.0"]),
    ],
)  # fmt: skip
def test_patterns(dump_path: Path, level: str, patterns: list[str], expected: list[str]) -> None:
    assert record(dump_path, level=level, list=patterns) == expected


@pytest.mark.parametrize(
    ("level", "scope", "first", "last"),
    [
        ("L0", {"from": "Module.head.Linear.forward.0", "until": "Module.layers.2.act.ReLU.backward.0"},
         "Module.head.Linear.forward.0", "Module.layers.2.Layer.backward.0"),
        ("L1", {"from": "Functional.relu.2.forward", "until": "class:linear"},
         "Functional.relu.2.forward", "Tensor.__add__.2.forward"),
        ("L1", [None, "Functional.linear.0.forward"], "Functional.layer_norm.0.forward", "Functional.linear.0.forward"),
        ("mix", {"until": "Functional.linear.0.forward"},
         "Functional.layer_norm.0.forward", "Module.layers.0.Layer.forward.0"),
        ("mix", {"from": "Module.layers.0.fc.Linear.backward.0"},
         "Module.layers.0.fc.Linear.backward.0", "Module.layers.0.norm.LayerNorm.backward.0"),
    ],
)  # fmt: skip
def test_scopes(dump_path: Path, level: str, scope: Any, first: str, last: str) -> None:
    names = [name for name in record(dump_path, level=level, scope=scope) if "parameters_grad" not in name]
    whole = [name for name in record(dump_path.with_name("whole"), level=level) if "parameters_grad" not in name]
    assert (names[0], names[-1]) == (first, last)
    assert [name for name in whole if name in names] == names


class CellLayer(mindspore.nn.Cell):
    def __init__(self, wide: int) -> None:
        super().__init__()
        self.norm, self.fc = mindspore.nn.LayerNorm((wide,)), mindspore.nn.Dense(wide, wide)
        self.act = mindspore.nn.ReLU()

    def construct(self, x: mindspore.Tensor) -> mindspore.Tensor:
        return self.act(self.fc(self.norm(x))) + x


class CellNet(mindspore.nn.Cell):
    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers = mindspore.nn.CellList([CellLayer(4) for _ in range(layers)])
        self.head = mindspore.nn.Dense(4, 2)

    def construct(self, x: mindspore.Tensor) -> mindspore.Tensor:
        for layer in self.layers:
            x = layer(x)
        return mindspore.ops.relu(self.head(x))


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_skip_picks_the_same_modules_on_both_frameworks(ms: Any, dump_path: Path, level: str) -> None:
    """At mix too, although the two make different functions of one layer."""
    theirs = record(dump_path, Net(6), level=level, skip=4)
    cells = CellNet(6)
    with recording(cells, dump_path.with_name("ms"), level=level, skip=4):
        x = mindspore.Tensor(np.ones((1, 4), np.float32))
        mindspore.value_and_grad(lambda x: cells(x).sum(), 0, cells.trainable_params())(x)
    ours = list(read_step(dump_path.with_name("ms")).data)

    def modules(names: list[str]) -> list[tuple[str, str, int | None]]:
        found = [entry for entry in map(parse_entry, names) if entry is not None and entry.is_module]
        return [(entry.name, entry.direction, entry.index) for entry in found if entry.direction != PARAMETERS_GRAD]

    assert modules(ours) == modules(theirs)
    assert len(modules(theirs)) == 2 * 5


class Recomputing(Net):
    def __init__(self, reentrant: bool) -> None:
        super().__init__(8)
        self.reentrant = reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=self.reentrant)
        return torch.relu(self.head(x))


@pytest.mark.parametrize("reentrant", [True, False])
def test_skip_takes_a_recomputed_call_with_the_one_before(dump_path: Path, reentrant: bool) -> None:
    plain = record(dump_path, Net(8), level="L0", skip=4)
    names = record(dump_path.with_name("again"), Recomputing(reentrant), level="L0", skip=4)
    first = {name for name in names if name.endswith(".forward.0")}
    assert first == {name for name in plain if name.endswith(".forward.0")}
    layers = {name.removesuffix("0") for name in first if ".layers." in name}
    again = {name.removesuffix("1") for name in names if name.endswith(".forward.1")}
    assert again == layers if reentrant else again < layers  # it stops once it has what backward needs
    with_gradient = f".backward.{int(reentrant)}"
    assert {name.removesuffix(with_gradient) for name in names if name.endswith(with_gradient)} >= {
        name.removesuffix(".forward.") for name in layers
    }
