"""Modules of real nets that are written in another way are paired with their counterparts."""

from __future__ import annotations

from pathlib import Path

import torch
from recording import read_step, write_config

from msprobe_ms.comparison.pairing.automatic import align_modules
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.pytorch import PrecisionDebugger


class Scale(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.linspace(0.5, 1.5, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale


class Owner(torch.nn.Module):
    """A block that owns the scale of its second half."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.first, self.second = torch.nn.LayerNorm(8), torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)
        self.scale = torch.nn.Parameter(torch.linspace(0.5, 1.5, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.scale * self.second(torch.relu(self.first(self.norm(x))))


class Holder(Owner):
    """The same block, whose scale is a module."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = None
        self.scaling = Scale()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.scaling(self.second(torch.relu(self.first(self.norm(x)))))


class Joined(torch.nn.LayerNorm):
    """A norm that holds its activation."""

    def __init__(self) -> None:
        super().__init__(8)
        self.act = torch.nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(super().forward(x))


def aligned(folder: Path, **nets: torch.nn.Module) -> dict[str, str]:
    """Target path → golden path."""
    dumps = []
    for side, net in nets.items():
        debugger = PrecisionDebugger(write_config(folder / side, level="L0"))
        debugger.start(net)
        net(torch.linspace(-1, 1, 24).reshape(3, 8)).square().sum().backward()
        debugger.stop()
        debugger.step()
        dumps.append(read_dump(read_step(folder / side).folder / "dump.json"))
    return {module[0]: other[0] for module, (other, _) in align_modules(*dumps).pairs.items()}


def copied(net: torch.nn.Module, other: torch.nn.Module, **names: str) -> torch.nn.Module:
    """``other`` with the weights of ``net``, which it calls otherwise where ``names`` says so."""
    values = net.state_dict()
    other.load_state_dict({names.get(name.replace(".", "_"), name): value for name, value in values.items()})
    return other


def test_a_block_that_owns_a_scale_is_the_block_which_holds_it_as_a_module(tmp_path: Path) -> None:
    torch.manual_seed(3)
    owners = torch.nn.Sequential(Owner(), Owner())
    names = {f"{number}_scale": f"{number}.scaling.scale" for number in range(2)}
    holders = copied(owners, torch.nn.Sequential(Holder(), Holder()), **names)
    pairs = aligned(tmp_path, target=owners, golden=holders)
    assert {path: pairs[path] for path in ("0", "1", "0.norm", "1.second")} == {
        "0": "0", "1": "1", "0.norm": "0.norm", "1.second": "1.second",
    }  # fmt: skip


def test_a_norm_that_holds_its_activation_is_the_norm_beside_the_activation(tmp_path: Path) -> None:
    torch.manual_seed(3)
    beside = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
    joined = torch.nn.Sequential(torch.nn.Linear(8, 8), Joined(), torch.nn.Linear(8, 4))
    copied(beside, joined, **{"3_weight": "2.weight", "3_bias": "2.bias"})
    pairs = aligned(tmp_path, target=beside, golden=joined)
    assert (pairs["0"], pairs["1"], pairs["3"]) == ("0", "1", "2")
