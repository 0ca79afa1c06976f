"""``compare --node``: one call of real dumps in detail."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from compare_parts import scale_against_good
from torch import nn

import msprobe_ms.pytorch
from msprobe_ms.cli.main import main


class Block(nn.Module):
    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(16, eps=epsilon)
        self.fc = nn.Linear(16, 16)

    def forward(self, x: Any) -> Any:
        return x + torch.nn.functional.gelu(self.fc(self.norm(x)))


class Net(nn.Module):
    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 16)
        self.blocks = nn.ModuleList([Block(1e-5), Block(epsilon), Block(1e-5)])
        self.head = nn.Linear(16, 11)

    def forward(self, ids: Any) -> Any:
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Sides(NamedTuple):
    target: Path
    golden: Path

    def node(self, name: str, *more: str) -> int:
        return main(["compare", "-tp", str(self.target), "-gp", str(self.golden), "--node", name, *more])


def dump(folder: Path, epsilon: float, task: str) -> Path:
    torch.manual_seed(1)
    net = Net(epsilon)
    ids = torch.randint(0, 11, (4, 6))
    with msprobe_ms.pytorch.record(net, level="mix", task=task, dump_path=folder) as recorded:
        torch.nn.functional.cross_entropy(net(ids).reshape(-1, 11), ids.reshape(-1)).backward()
    return Path(recorded.path)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("dumps")
    return {
        f"{name}_{task}": dump(folder / f"{name}_{task}", epsilon, task)
        for name, epsilon in (("bad", 1e-2), ("good", 1e-5))
        for task in ("tensor", "statistics")
    }


@pytest.fixture
def real(recorded: dict[str, Path]) -> Sides:
    """The second block of the target has a wrong epsilon; both hold tensors."""
    return Sides(recorded["bad_tensor"], recorded["good_tensor"])


@pytest.fixture
def figures(recorded: dict[str, Path]) -> Sides:
    return Sides(recorded["bad_statistics"], recorded["good_statistics"])


NORM = "Module.blocks.1.norm.LayerNorm"
#: The call inside of it that takes the epsilon in.
CALL = "Functional.layer_norm.1.forward"


@pytest.mark.parametrize("name", ["blocks.1.norm", "blocks.1.norm.LayerNorm", NORM, f"{NORM}.forward.0"])
def test_what_an_origin_is_inside_of_is_told_whole(name: str, real: Sides, capsys: pytest.CaptureFixture[str]) -> None:
    assert real.node(name) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{NORM}.forward.0"
    assert lines[1] == f"  golden: {NORM}.forward.0 (pairing: name)"
    assert lines[2].startswith(f"  the error begins inside: {CALL}.output.0: output.0 deviates by ")
    assert ", though its inputs but input.4 agree exactly: its argument eps is 0.01, the golden's is 1e-05" in lines[2]
    text = "\n".join(lines)
    for direction in ("forward.0", "backward.0", "parameters_grad.0"):
        assert f"\n{NORM}.{direction}\n" in text
    assert "called in Module.blocks.1.Block.forward.0" in text
    assert f"called at File {__file__}" in text
    assert "input.0 is Module.blocks.0.Block.forward.0.output.0" in text
    assert "output.0 goes to Module.blocks.1.fc.Linear.forward.0.input.0" in text
    for metric in ("cosine: 0.99", "max absolute error: ", "one thousandth ratio: "):
        assert metric in text


def test_an_origin_says_how_far_beyond_its_tolerance_it_is(real: Sides, capsys: pytest.CaptureFixture[str]) -> None:
    assert real.node(CALL) == 0
    text = capsys.readouterr().out
    assert f"  ORIGIN: {CALL}.output.0: output.0 deviates by " in text
    assert re.search(
        r"its deviation is \S+ times its tolerance; a tolerance of \S+ would accept it; the tolerance "
        r"applied is",
        text,
    )


def test_the_worst_elements_are_those_of_the_files(real: Sides, capsys: pytest.CaptureFixture[str]) -> None:
    name = f"{NORM}.forward.0.output.0"
    real.node(name)
    lines = capsys.readouterr().out.splitlines()
    mine, theirs = (
        torch.load(side / "dump_tensor_data" / f"{name}.pt").detach().numpy() for side in (real.target, real.golden)
    )
    error = np.abs(mine.astype(np.float64) - theirs)
    worst = lines[next(place for place, line in enumerate(lines) if "largest errors:" in line) + 2]
    place = np.unravel_index(error.argmax(), error.shape)
    index, figures = worst.split("]")
    assert error[tuple(int(part) for part in index.strip(" [").split(","))] == error.max()
    assert [float(figure) for figure in figures.split()] == pytest.approx(
        [mine[place], theirs[place], error.max(), error.max() / abs(theirs[place])], rel=1e-3
    )
    assert f"elements: {np.count_nonzero(error)} of {error.size} differ" in "\n".join(lines)


def test_what_comes_later_inherits_and_says_from_where(real: Sides, capsys: pytest.CaptureFixture[str]) -> None:
    real.node("head")
    assert f" inherits its error, which begins earlier, at {CALL}.output.0" in capsys.readouterr().out
    real.node("blocks.1")
    assert f"the error begins inside: {CALL}.output.0" in capsys.readouterr().out


def test_exit_code_is_that_of_the_node(real: Sides) -> None:
    assert real.node("blocks.0", "--exit-code") == 1  # its gradients inherit
    assert real.node("Module.blocks.0.Block.forward.0.output.0", "--exit-code") == 0
    assert real.node("blocks.1.norm", "--exit-code") == 1
    assert real.node("nowhere", "--exit-code") == 2


def test_what_agrees_says_so(real: Sides, capsys: pytest.CaptureFixture[str]) -> None:
    real.node("Module.blocks.0.Block.forward.0.output.0")
    text = capsys.readouterr().out
    assert "agrees: all values agree within rounding error" in text and "elements: all 384 equal" in text


def test_of_several_calls_the_worst_is_told_and_the_others_are_named(
    real: Sides, capsys: pytest.CaptureFixture[str]
) -> None:
    real.node("Functional.layer_norm")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Functional.layer_norm.1.forward"
    assert lines[2].strip() == (
        "of 3 calls this one differs most; also Functional.layer_norm.0.forward, Functional.layer_norm.2.forward"
    )


def test_statistics_alone_tell_figures_and_what_to_do_for_elements(
    figures: Sides, capsys: pytest.CaptureFixture[str]
) -> None:
    assert figures.node(CALL) == 0
    text = capsys.readouterr().out
    assert "ORIGIN: " in text and "maximum" in text
    assert "elements: the dumps hold none; dump both with task tensor" in text


def test_with_an_output_folder_the_text_is_kept_and_never_overwritten(
    real: Sides, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        real.node("blocks.1.norm", "-o", str(tmp_path / "out"))
    printed = capsys.readouterr().out
    files = sorted((tmp_path / "out").iterdir())
    assert len(files) == 2 and all(path.name.startswith(f"node_{NORM}.forward.0_2") for path in files)
    for path in files:
        assert f"report: {path}" in printed and path.read_text() in printed


def test_an_unknown_name_is_one_error_with_what_is_near(real: Sides, capsys: pytest.CaptureFixture[str]) -> None:
    assert real.node("blocks.1.nrom") == 2
    error = capsys.readouterr().err
    assert "--node 'blocks.1.nrom': neither dump has an entry, a value or a module of this name; near are" in error
    assert "blocks.1.norm" in error
    assert real.node("layernorm") == 2
    assert capsys.readouterr().err.endswith("near are blocks.0.norm, blocks.1.norm, blocks.2.norm\n")


def test_a_file_that_is_gone_costs_the_elements_alone(
    real: Sides, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "target"
    shutil.copytree(real.target, target)
    lost = target / "dump_tensor_data" / f"{NORM}.forward.0.output.0.pt"
    lost.write_bytes(b"garbage")
    assert Sides(target, real.golden).node(f"{NORM}.forward.0.output.0") == 0
    text = capsys.readouterr().out
    assert f"elements: {lost}: not a file of torch.save" in text and "maximum" in text


def test_a_dump_of_1_1_0_with_names_of_the_golden(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scale_against_good(tmp_path)
    both = Sides(tmp_path / "scale", tmp_path / "good")
    assert both.node("Functional.layer_norm.2") == 0
    text = capsys.readouterr().out
    assert "ORIGIN: Functional.layer_norm.2.forward.input.2" in text


def test_a_call_of_one_side_alone(real: Sides, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The golden is a net without its head: what has no twin is told, and counts as different."""
    torch.manual_seed(1)
    net = Net(1e-5)
    ids = torch.randint(0, 11, (4, 6))
    with msprobe_ms.pytorch.record(net.blocks, level="L0", task="statistics", dump_path=tmp_path / "part") as part:
        x = net.embedding(ids)
        for block in net.blocks:
            x = block(x)
    sides = Sides(real.target, Path(part.path))
    assert sides.node("head", "--exit-code") == 1
    assert "only in the target: nothing to compare it with" in capsys.readouterr().out


def test_a_saved_value_is_a_node_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, factor in (("target", 2.0), ("golden", 1.0)):
        debugger = msprobe_ms.pytorch.PrecisionDebugger(level="debug", task="tensor", dump_path=tmp_path / name)
        debugger.start()
        debugger.save(torch.ones(3), "x")
        debugger.save({"y": torch.arange(4.0) * factor, "k": 2}, "outs")
        debugger.stop()
        debugger.step()
    sides = Sides(tmp_path / "target", tmp_path / "golden")
    assert sides.node("outs", "--exit-code") == 1
    text = capsys.readouterr().out
    assert "ORIGIN: outs.0.debug.y: the saved value differs" in text and "the target is 2 × the golden" in text
    assert sides.node("x.0.debug", "--exit-code") == 0
    assert "itself" in (text := capsys.readouterr().out) and "elements: all 3 equal" in text and "any other" not in text


def test_several_ranks_ask_for_one(real: Sides, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rank in ("rank0", "rank1"):
        shutil.copytree(real.target, tmp_path / "step0" / rank)
    assert Sides(tmp_path / "step0", real.golden).node("head") == 2
    assert "--node looks at one rank, here are rank0, rank1; name the folder of one" in capsys.readouterr().err


def test_what_a_mapping_may_pair_says_so(real: Sides, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden = tmp_path / "golden"
    golden.mkdir()
    for file in ("dump.json", "construct.json", "stack.json"):
        text = (real.golden / file).read_text().replace("Module.head.Linear", "Module.output.Linear")
        (golden / file).write_text(text)
    assert Sides(real.target, golden).node("head") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:3] == [
        "  only in the target: nothing to compare it with",
        "  where a mapping pairs it, as in the report, give the same -lm, -cm, -am, -dm or -fm here as well",
    ]
