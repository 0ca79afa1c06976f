"""A step that an exception ended is told, in which call and what it lacks; what was chosen to be less is not."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from recording import write_config

import msprobe_ms
from msprobe_ms.comparison.reporting.terminal import verdict_lines
from msprobe_ms.comparison.run import Options, Outcome, compare_dumps
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.pytorch import PrecisionDebugger

BLOCKS = 6


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.fails = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.up(x)
        if self.fails:
            raise RuntimeError("out of memory")
        return x + self.down(x)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(BLOCKS))

    def forward(self, x: torch.Tensor, fails_before: int = BLOCKS) -> torch.Tensor:
        for number, block in enumerate(self.blocks):
            if number == fails_before:
                raise RuntimeError("out of memory")
            x = block(x)
        return x


def fail(gradient: torch.Tensor) -> None:
    raise RuntimeError("out of memory")


def step(folder: Path, failing: str = "", **config: Any) -> Dump:
    """One step of the same net and data each time; ``failing`` says where an exception ends it."""
    torch.manual_seed(1)
    net, x = Net(), torch.randn(3, 4, requires_grad=True)
    net.blocks[1].fails = failing == "inside"
    debugger = PrecisionDebugger(write_config(folder / "dump", **config))
    debugger.start(net)
    with pytest.raises(RuntimeError, match="out of memory") if failing else nullcontext():
        output = net(x, 2 if failing == "between" else BLOCKS)
        if failing == "loss":
            raise RuntimeError("out of memory")
        if failing == "backward":
            net.blocks[4].up.bias.register_hook(fail)
        output.sum().backward()
    debugger.stop()
    debugger.step()
    (path,) = folder.glob("dump/step0/*/dump.json")
    return read_dump(path)


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Dump:
    return step(tmp_path_factory.mktemp("golden"))


def compared(target: Dump, golden: Dump) -> tuple[str, list[str]]:
    comparison = compare_dumps(target, golden, Options())
    return comparison.verdict, list(verdict_lines(Outcome("", target, golden, comparison, [])))


SAID = {
    "inside": (
        "ends early: its last call is Module.blocks.1.up.Linear.forward.0, the {} goes on with "
        "Module.blocks.1.down.Linear.forward.0 and 13 more calls; it has gradients, the {} has none"
    ),
    "between": (
        "ends early: its last call is Module.blocks.1.Block.forward.0, the {} goes on with "
        "Module.blocks.2.up.Linear.forward.0 and 11 more calls; it has gradients, the {} has none"
    ),
    "loss": "ends before its backward: the {} has gradients, the {} has none",
}


@pytest.mark.parametrize("failing", SAID)
@pytest.mark.parametrize("turned", [False, True])
def test_a_step_that_an_exception_ended_says_where_it_ends(
    failing: str, turned: bool, golden: Dump, tmp_path: Path
) -> None:
    dumps = step(tmp_path, failing), golden
    ended, whole = ("golden", "target") if turned else ("target", "golden")
    verdict, lines = compared(*dumps[::-1] if turned else dumps)
    assert verdict == "incomplete"
    assert f"the {ended} {SAID[failing].format(whole, ended)}" in lines
    assert any(
        line.startswith("INCOMPLETE: what was compared agrees, but one side ends before the other") for line in lines
    )
    with pytest.raises(AssertionError, match="but one side ends before the other"):
        msprobe_ms.assert_consistent(*dumps)


def test_a_backward_that_an_exception_ended_is_never_consistent(golden: Dump, tmp_path: Path) -> None:
    assert compared(step(tmp_path, "backward"), golden)[0] != "consistent"


def test_a_backward_that_lacks_most_says_where_it_ends(golden: Dump, tmp_path: Path) -> None:
    """As the dump of a tool that writes no gradients of parameters before the end."""
    target = step(tmp_path)
    backward = [name for name in target.entries if ".backward." in name][:4]
    for name in list(target.entries):
        if ".forward." not in name and name not in backward:
            del target.entries[name]
    verdict, lines = compared(target, golden)
    (line,) = [line for line in lines if line.startswith("the backward of the target ends early: its last call is")]
    assert line.endswith("more calls")
    assert verdict == "incomplete"


@pytest.mark.parametrize(
    "config",
    [
        {"list": ["Module.blocks.3.Block"]},
        {"list": [f"Module.blocks.{number}.up" for number in range(BLOCKS)]},
        {"scope": ["Module.blocks.4.Block.forward.0", "Module.blocks.3.Block.backward.0"]},
    ],
    ids=["module", "layers", "scope"],
)
def test_calls_that_were_chosen_are_consistent_in_what_was_compared(
    config: dict[str, Any], golden: Dump, tmp_path: Path
) -> None:
    target = step(tmp_path, **config)
    verdict, lines = compared(target, golden)
    assert verdict == "consistent"
    assert not any("ends" in line for line in lines)
    assert lines[0].startswith("CONSISTENT in what was compared: all values agree within the rounding error")
    assert "values of the golden have no counterpart, more than were compared: they are not judged" in lines[1]
    msprobe_ms.assert_consistent(target, golden)


def test_a_dump_compared_wholly_says_nothing_of_its_end(golden: Dump, tmp_path: Path) -> None:
    verdict, lines = compared(step(tmp_path), golden)
    assert verdict == "consistent"
    assert lines[0] == "CONSISTENT: all values agree within the rounding error of their dtypes"
    assert not any("ends" in line or "no counterpart" in line for line in lines)
