"""Functions called in a module that only one side has: a wrapper around the net, or what the other side took apart."""

from __future__ import annotations

import pytest
import torch
from built_dumps import dump, entry, paired
from torch import nn

import msprobe_ms.pytorch
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.run import Options, compare_dumps
from msprobe_ms.dump.model import Entry
from msprobe_ms.dump.reading.locate import find_dumps
from msprobe_ms.dump.reading.reader import read_dump

RENAMED = Mappings(layer={"TopLayer": {"net.fc": "fc", "net.out": "out"}})


def wrapped(prefix: str = "Cell") -> list:
    """Two layers and a function between them, in a net that a wrapper holds; and a loss outside."""
    net = f"{prefix}.net.Net.forward.0"
    return [
        entry(f"{prefix}.net.fc.Dense.forward.0", parent=net),
        entry("Functional.relu.0.forward", parent=net),
        entry(f"{prefix}.net.out.Dense.forward.0", parent=net),
        entry(net),
        entry("Functional.mse.0.forward"),
    ]


def bare(prefix: str = "Module") -> list:
    return [
        entry(f"{prefix}.fc.Linear.forward.0"),
        entry("Functional.relu.0.forward"),
        entry(f"{prefix}.out.Linear.forward.0"),
        entry("Functional.mse.0.forward"),
    ]


@pytest.mark.parametrize("fuzzy", [False, True])
def test_what_a_net_calls_itself_pairs_though_one_side_wraps_it(fuzzy: bool) -> None:
    target, golden = dump("mindspore", *wrapped()), dump("pytorch", *bare())
    found = paired(pair(target, golden, RENAMED, fuzzy=fuzzy))
    assert found["Functional.relu.0.forward"] == "Functional.relu.0.forward"
    assert found["Functional.mse.0.forward"] == "Functional.mse.0.forward"
    back = Mappings(layer={"TopLayer": {"fc": "net.fc", "out": "net.out"}})
    target, golden = dump("mindspore", *bare("Cell")), dump("pytorch", *wrapped("Module"))
    assert paired(pair(target, golden, back, fuzzy=fuzzy))["Functional.relu.0.forward"] == "Functional.relu.0.forward"


def test_a_module_whose_layers_are_in_two_places_there_says_nothing() -> None:
    target = dump("mindspore", *wrapped())
    golden = dump(
        "pytorch",
        entry("Module.a.fc.Linear.forward.0", parent="Module.a.A.forward.0"),
        entry("Functional.relu.0.forward", parent="Module.a.A.forward.0"),
        entry("Module.a.A.forward.0"),
        entry("Module.out.Linear.forward.0"),
    )
    mappings = Mappings(layer={"TopLayer": {"net.fc": "a.fc", "net.out": "out"}})
    assert "Functional.relu.0.forward" not in paired(pair(target, golden, mappings))


class Net(nn.Module):
    """Functions of its own between its layers, and in a block that holds layers."""

    def __init__(self, flat: bool = False) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.flat = flat
        self.fc = nn.Linear(4, 8)
        if flat:
            self.up, self.down = nn.Linear(8, 8), nn.Linear(8, 8)
        else:
            self.block = Block()
        self.out = nn.Linear(8, 2)

    def forward(self, x):
        x = torch.relu(self.fc(x)) * 2
        x = torch.tanh(self.up(x)) + self.down(x) if self.flat else self.block(x)
        return torch.sigmoid(self.out(x)).sum()


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        return torch.tanh(self.up(x)) + self.down(x)


class Wrapper(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x)


@pytest.mark.parametrize("wrap", [True, False])
def test_every_function_of_nets_of_another_structure_pairs(tmp_path, wrap: bool) -> None:
    def recorded(name: str, net: nn.Module):
        torch.manual_seed(4)
        with msprobe_ms.pytorch.record(net, level="mix", task="statistics", dump_path=tmp_path / name):
            net(torch.randn(3, 4)).backward()
        (path,) = find_dumps(tmp_path / name).values()
        return read_dump(path)

    target, golden = recorded("plain", Net()), recorded("other", Wrapper(Net()) if wrap else Net(flat=True))
    for sides in ((target, golden), (golden, target)):
        found = compare_dumps(*sides, Options(align=True))
        alone = [each for both in found.pairs if not both.matched for each in (both.target, both.golden) if each]
        assert [each.name for each in alone if each.parsed and not each.parsed.is_module] == []
        assert found.verdict == "consistent"


def layers(prefix: str, *, wrapped: bool, parameters: bool = False) -> list:
    """Blocks of two layers with an activation between them, called as a module of its own or as a function."""
    dense, made = "Dense" if prefix == "Cell" else "Linear", list[Entry]()
    function = "Primitive.relu.ReLU" if prefix == "Cell" else "Functional.relu"
    for number in range(2):
        block = f"{prefix}.blocks.{number}.Block.forward.0"
        act = f"{prefix}.blocks.{number}.act.ReLU.forward.0"
        items = {"parameters.slope": (1,)} if parameters else {}
        made += [
            entry(f"{prefix}.blocks.{number}.fc.{dense}.forward.0", parent=block),
            entry(f"{function}.{number}.forward", parent=act if wrapped else block),
            *([entry(act, items, parent=block)] if wrapped else []),
            entry(f"{prefix}.blocks.{number}.out.{dense}.forward.0", parent=block),
            entry(block),
        ]
    # Outside of all blocks as well.
    act = f"{prefix}.act.ReLU.forward.0"
    made += [entry(f"{function}.2.forward", parent=act), entry(act)] if wrapped else [entry(f"{function}.2.forward")]
    return made


RELUS = {f"Primitive.relu.ReLU.{number}.forward": f"Functional.relu.{number}.forward" for number in range(3)}
LAYERS = Mappings(
    cell={
        f"blocks.{number}.{name}.Dense": f"blocks.{number}.{name}.Linear"
        for number in range(2)
        for name in ("fc", "out")
    }
)


@pytest.mark.parametrize("ours", [False, True])
@pytest.mark.parametrize("theirs", [False, True])
def test_a_function_that_one_side_wraps_in_a_module_pairs_with_the_function(ours: bool, theirs: bool) -> None:
    target, golden = (
        dump("mindspore", *layers("Cell", wrapped=ours)),
        dump("pytorch", *layers("Module", wrapped=theirs)),
    )
    found = paired(pair(target, golden, LAYERS))
    assert {name: found.get(name) for name in RELUS} == RELUS


def test_a_wrapper_with_parameters_may_be_any_layer() -> None:
    target = dump("mindspore", *layers("Cell", wrapped=True, parameters=True))
    found = paired(pair(target, dump("pytorch", *layers("Module", wrapped=False)), LAYERS))
    assert [name for name in RELUS if found.get(name)] == ["Primitive.relu.ReLU.2.forward"]


def test_a_wrapper_of_another_name_may_be_any_module() -> None:
    other = [entry("Torch.neg.0.forward", parent="Module.z.Z.forward.0"), "Module.z.Z.forward.0"]
    golden = dump("pytorch", "Torch.exp.0.forward", *other)
    for name, pairs in (("Gate", {}), ("Exp", {"Mint.exp.0.forward": "Torch.exp.0.forward"})):
        call = f"Cell.a.{name}.forward.0"
        assert (
            paired(pair(dump("mindspore", entry("Mint.exp.0.forward", parent=call), call), golden, Mappings())) == pairs
        )
