"""Parameters of the model itself (a class token, position embeddings), recorded and compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from msprobe_ms.comparison.model import Comparison, OriginKind
from msprobe_ms.comparison.pairing.coverage import unmatched_modules
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.reading.locate import find_dumps
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.pytorch import PrecisionDebugger

LEVELS = ("L0", "mix")
WIDTH = 8


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(torch.tanh(self.up(self.norm(x))))


class ViT(nn.Module):
    """Tokens of a picture, a class token before them, positions added."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Linear(5, WIDTH)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.pos_embed = nn.Parameter(torch.zeros(1, 4, WIDTH))
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), self.patch(x)], dim=1) + self.pos_embed
        return self.head(self.blocks(x)[:, 0])


class VisionTransformer(ViT):
    """The same net by another name."""


class Embeddings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Linear(5, WIDTH)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.pos_embed = nn.Parameter(torch.zeros(1, 4, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.cls_token.expand(len(x), -1, -1), self.patch(x)], dim=1) + self.pos_embed


class WithEmbeddings(nn.Module):
    """The same net, whose own parameters are in a module below it."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = Embeddings()
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.embeddings(x))[:, 0])


class Wrapped(nn.Module):
    """The same net inside another that has no parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.vit = WithEmbeddings()

    def forward(self, x: Tensor) -> Tensor:
        return self.vit(x)


Change = Callable[[nn.Module], None]


def filled(net: nn.Module, change: Change = lambda net: None) -> nn.Module:
    """The net with the same weights for each parameter's last name and place, whatever module holds it."""
    generator = torch.Generator().manual_seed(3)
    own = sorted(net.named_parameters(), key=lambda named: (named[0].split(".")[-1], named[1].shape, named[0][-12:]))
    for _, parameter in own:
        parameter.data = torch.randn(parameter.shape, generator=generator) * 0.5
    change(net)
    return net


def recorded(folder: Path, net: nn.Module, level: str = "L0", noise: float = 0.0) -> Dump:
    """One step; with ``noise`` that of another machine: weights are off by so much, as roundings are."""
    debugger = PrecisionDebugger(dump_path=str(folder), task="statistics", level=level)
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(2, 3, 5, generator=generator) * (1 + noise)
    debugger.start(net)
    nn.functional.cross_entropy(net(x), torch.tensor([0, 2])).backward()
    debugger.stop()
    debugger.step()
    (found,) = find_dumps(folder / "step0").values()
    return read_dump(found)


def judged(target: Dump, golden: Dump, *, align: bool = False) -> Comparison:
    return compare_dumps(target, golden, Options(align=align))


def other_positions(net: nn.Module) -> None:
    net.pos_embed.data = torch.zeros_like(net.pos_embed)


def frozen_positions(net: nn.Module) -> None:
    net.pos_embed.requires_grad_(False)


def test_it_has_an_entry_and_encloses_all_others(tmp_path: Path) -> None:
    dump = recorded(tmp_path / "dump", filled(ViT()), "mix")
    forward = dump.entries["Module.ViT.forward.0"]
    assert [item.path for item in forward.in_state("parameters")] == [("cls_token",), ("pos_embed",)]
    assert {item.path[0] for item in dump.entries["Module.ViT.parameters_grad.0"].items} == {"cls_token", "pos_embed"}
    assert (forward.parent, dump.entries["Module.patch.Linear.forward.0"].parent) == (None, forward.name)
    assert dump.entries["Torch.cat.0.forward"].parent == forward.name
    assert dump.entries["Functional.cross_entropy.0.forward"].parent is None
    assert dump.entries["Module.head.Linear.backward.0"].parent == "Module.ViT.backward.0"


def test_a_model_without_parameters_of_its_own_has_none(tmp_path: Path) -> None:
    tied = WithEmbeddings()
    tied.first = tied.embeddings.patch.weight  # it holds what a module below it holds
    for number, net in enumerate((filled(WithEmbeddings()), filled(tied), nn.DataParallel(filled(ViT())))):
        dump = recorded(tmp_path / str(number), net)
        assert not any(entry.parsed and entry.parsed.is_root for entry in dump.entries.values())


def test_of_several_models_each_has_its_own(tmp_path: Path) -> None:
    nets = [filled(ViT()), filled(WithEmbeddings()), nn.Linear(3, 3)]
    debugger = PrecisionDebugger(dump_path=str(tmp_path), task="statistics", level="L0")
    debugger.start(nets)
    x = torch.ones(2, 3, 5)
    nets[2](nets[0](x) + nets[1](x)).sum().backward()
    debugger.stop()
    debugger.step()
    (found,) = find_dumps(tmp_path / "step0").values()
    dump = read_dump(found)
    assert {"Module.0.ViT.forward.0", "Module.0.ViT.backward.0", "Module.0.ViT.parameters_grad.0"} <= set(dump.entries)
    assert "Module.2.Linear.parameters_grad.0" in dump.entries
    assert "Module.1.WithEmbeddings.forward.0" not in dump.entries


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("level", LEVELS)
def test_it_stands_beside_the_other_whatever_both_are_called(tmp_path: Path, level: str, align: bool) -> None:
    target = recorded(tmp_path / "target", filled(ViT()), level, noise=1e-7)
    comparison = judged(target, recorded(tmp_path / "golden", filled(VisionTransformer()), level), align=align)
    assert (comparison.verdict, unmatched_modules(comparison.pairs)) == ("consistent", ([], []))
    beside = {pair.target.name: pair.golden.name for pair in comparison.pairs if pair.target and pair.golden}
    for direction in ("forward.0", "backward.0", "parameters_grad.0"):
        assert beside[f"Module.ViT.{direction}"] == f"Module.VisionTransformer.{direction}"


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("level", LEVELS)
def test_a_wrong_parameter_of_it_is_named_first(tmp_path: Path, level: str, align: bool) -> None:
    target = recorded(tmp_path / "target", filled(ViT(), other_positions), level)
    comparison = judged(target, recorded(tmp_path / "golden", filled(VisionTransformer()), level), align=align)
    first = comparison.origins[0]
    assert (first.target, first.kind) == ("Module.ViT.forward.0.parameters.pos_embed", OriginKind.PARAMETER)
    assert first.golden == "Module.VisionTransformer.forward.0.parameters.pos_embed"


@pytest.mark.parametrize("level", LEVELS)
def test_a_parameter_of_it_without_a_gradient_is_named_first(tmp_path: Path, level: str) -> None:
    target = recorded(tmp_path / "target", filled(ViT(), frozen_positions), level)
    comparison = judged(target, recorded(tmp_path / "golden", filled(VisionTransformer()), level))
    first = comparison.origins[0]
    assert (first.target, first.kind) == ("Module.ViT.forward.0.parameters.pos_embed", OriginKind.MISSING_GRADIENT)


def test_a_fault_inside_is_named_before_what_encloses_it(tmp_path: Path) -> None:
    def other_epsilon(net: nn.Module) -> None:
        net.blocks[1].norm.eps = 1e-2

    target = recorded(tmp_path / "target", filled(ViT(), other_epsilon))
    origins = judged(target, recorded(tmp_path / "golden", filled(ViT()))).origins
    assert [origin.target for origin in origins] == ["Module.blocks.1.norm.LayerNorm.forward.0.output.0"]


def test_a_fault_in_its_own_code_is_its_own(tmp_path: Path) -> None:
    class Scaled(ViT):
        def forward(self, x: Tensor) -> Tensor:
            x = torch.cat([self.cls_token.expand(len(x), -1, -1), self.patch(x)], dim=1) + 1.1 * self.pos_embed
            return self.head(self.blocks(x)[:, 0])

    target = recorded(tmp_path / "target", filled(Scaled()))
    (origin,) = judged(target, recorded(tmp_path / "golden", filled(ViT()))).origins
    assert origin.target == "Module.Scaled.forward.0.output.0"
    assert "look at its code before blocks" in origin.reason


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("other", [WithEmbeddings, Wrapped])
@pytest.mark.parametrize("target_has_it", [True, False])
def test_one_that_the_other_side_lacks_is_rightly_alone(
    tmp_path: Path, level: str, align: bool, other: type[nn.Module], target_has_it: bool
) -> None:
    """Its parameters are in a module below the other one; what both have is compared all the same."""
    if other is Wrapped and not align:
        return  # its modules have other names
    dumps = [recorded(tmp_path / "it", filled(ViT()), level), recorded(tmp_path / "other", filled(other()), level)]
    names = ("patch", "embeddings.patch") if target_has_it else ("embeddings.patch", "patch")
    said = Mappings(layer={} if align else {"TopLayer": dict([names])})
    target, golden = dumps if target_has_it else dumps[::-1]
    comparison = compare_dumps(target, golden, Options(align=align, mappings=said))
    shares = comparison.shares
    assert comparison.verdict == "consistent", [origin.target for origin in comparison.origins]
    assert not [path for path in (*shares.target, *shares.golden) if "ViT" in path or path.endswith("blocks")]
    beside = {pair.target.name: pair.golden.name for pair in comparison.pairs if pair.target and pair.golden}
    sides = ("blocks", "vit.blocks") if other is Wrapped else ("blocks", "blocks")
    ours, theirs = sides if target_has_it else sides[::-1]
    name = "1.down.Linear.forward.0"
    assert beside[f"Module.{ours}.{name}"] == f"Module.{theirs}.{name}"
    if level == "mix":
        assert beside["Functional.cross_entropy.0.forward"] == "Functional.cross_entropy.0.forward"
        assert beside["Torch.cat.0.forward"] == "Torch.cat.0.forward"
