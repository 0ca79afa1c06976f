"""A damaged or missing file costs its own rows, with the reason; the rest is compared, and exit statuses hold."""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import mindspore
import numpy as np
import pytest
import torch
from mindspore import nn as ms_nn
from torch import nn

import msprobe_ms
import msprobe_ms.pytorch
from msprobe_ms.cli.main import main

DATA = "dump_tensor_data"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One net twice: .npy files of MindSpore, .pt files of PyTorch; equal weights and inputs. ``wrong``: the last layer
    of the MindSpore one has a bias too large."""
    folder = tmp_path_factory.mktemp("dumps")
    torch.manual_seed(1)
    golden = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    target = ms_nn.SequentialCell(ms_nn.Dense(4, 8), ms_nn.Tanh(), ms_nn.Dense(8, 2))
    for name, parameter in target.parameters_and_names():
        parameter.set_data(mindspore.Tensor(golden.state_dict()[name].numpy()))
    values = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    with msprobe_ms.pytorch.record(golden, level="L0", task="tensor", dump_path=folder / "golden") as dump:
        golden(torch.from_numpy(values))
    found = {"golden": Path(dump.path)}
    for name in ("target", "wrong"):
        if name == "wrong":
            target[2].bias.set_data(target[2].bias + 1)
        with msprobe_ms.record(target, level="L0", task="tensor", dump_path=folder / name) as other:
            target(mindspore.Tensor(values))
        found[name] = Path(other.path)
    return found


class Sides(NamedTuple):
    """Copies that a test may damage, compared with a cell mapping."""

    target: Path
    golden: Path
    output: Path

    def compare(self, *more: str) -> int:
        paths = ["-tp", str(self.target), "-gp", str(self.golden), "-o", str(self.output)]
        return main(["compare", *paths, "-cm", str(self.output.with_name("cells.yaml")), *more])

    def rows(self) -> list[dict[str, str]]:
        (table,) = self.output.glob("compare_result_*.csv")
        with table.open(newline="") as file:
            return list(csv.DictReader(file))

    def verdict(self) -> dict[str, Any]:
        (summary,) = self.output.glob("compare_summary_*.json")
        return json.loads(summary.read_text())


@pytest.fixture
def sides(recorded: dict[str, Path], tmp_path: Path) -> Sides:
    for name, folder in recorded.items():
        shutil.copytree(folder, tmp_path / name)
    (tmp_path / "cells.yaml").write_text("Dense: Linear\n")
    return Sides(tmp_path / "target", tmp_path / "golden", tmp_path / "out")


OURS = "Cell.0.Dense.forward.0.output.0.npy"
THEIRS = "Module.0.Linear.forward.0.output.0.pt"


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def link_out(path: Path) -> None:
    outside = path.parents[2] / f"outside{path.suffix}"
    shutil.move(path, outside)
    os.symlink(outside, path)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("side", "damage", "reason"),
    [
        ("target", cut, "takes 96 bytes, 91 are there"),
        ("target", Path.unlink, "no such file"),
        ("target", lambda path: path.write_bytes(b"\x93NUMPY garbage"), "the .npy header is damaged"),
        ("target", lambda path: path.write_bytes(b""), "the .npy header is damaged"),
        ("target", link_out, "a link that leaves"),
        ("target", pipe, "not a regular file"),
        ("golden", cut, "damaged zip archive"),
        ("golden", lambda path: path.write_bytes(b"PK\x03\x04" + bytes(200)), "damaged zip archive"),
        ("golden", lambda path: path.write_bytes(b"garbage"), "not a file of torch.save"),
        ("golden", Path.unlink, "no such file"),
        ("golden", link_out, "a link that leaves"),
    ],
)
def test_a_tensor_file_costs_its_own_row(
    side: str, damage: Callable[[Path], object], reason: str, sides: Sides, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, name = (sides.target, OURS) if side == "target" else (sides.golden, THEIRS)
    damage(folder / DATA / name)
    assert sides.compare("--csv", "--exit-code") == 0
    rows = sides.rows()
    damaged = [row for row in rows if row["NPU Name"] == OURS.removesuffix(".npy")]
    (row,) = damaged
    assert reason in row["Reason"] and row["Cosine"] == "no data"
    # Its statistics stand in, and the others are what they would be.
    assert row["NPU max"] == pytest.approx(row["Bench max"]) or float(row["NPU max"]) == pytest.approx(
        float(row["Bench max"]), rel=1e-5
    )
    others = [each for each in rows if each is not row and each["Bench Name"] not in ("", "N/A")]
    assert len(others) >= 8
    assert not any("not compared" in each["Reason"] for each in others)
    assert all(float(each["Cosine"]) > 0.999 for each in others)
    text = capsys.readouterr().out
    assert f"1 of {len(others) + 1} tensors could not be read; their statistics were compared instead" in text
    assert reason in text and "CONSISTENT" in text


def test_a_divergence_elsewhere_is_found_all_the_same(sides: Sides, capsys: pytest.CaptureFixture[str]) -> None:
    sides = sides._replace(target=sides.target.with_name("wrong"))
    cut(sides.target / DATA / OURS)
    assert sides.compare("--csv", "--exit-code") == 1
    assert sides.verdict()["origins"][0]["target"] == "Cell.2.Dense.forward.0.parameters.bias"
    assert "DIVERGENT: the error begins in the parameters, at" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["stack.json", "construct.json"])
@pytest.mark.parametrize("content", [b'{"0": [["a"], ["b"', b"", b"[]", b"\xff\xfe", None])
def test_a_file_beside_dump_json_costs_what_it_tells(
    name: str, content: bytes | None, sides: Sides, capfd: pytest.CaptureFixture[str]
) -> None:
    for folder in (sides.target, sides.golden):
        if content is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(content)
    assert sides.compare("--csv", "--exit-code") == 0
    assert sides.verdict()["verdict"] == "consistent" and len(sides.rows()) >= 9


def test_all_files_gone_is_told_and_statistics_are_compared(sides: Sides, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(sides.golden / DATA)
    dump = sides.golden / "dump.json"
    dump.write_text(json.dumps({**json.loads(dump.read_text()), "dump_data_dir": None}))
    assert sides.compare("--csv", "--exit-code") == 0
    assert "could not be read; their statistics were compared instead, which show less" in capsys.readouterr().out
    assert sum("there is no folder" in row["Reason"] for row in sides.rows()) >= 9


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (lambda path: path.unlink(), "no dump"),
        (lambda path: path.write_bytes(b""), "empty: the dumping process ended before it was written"),
        (lambda path: path.write_bytes(b"[1]"), "accepted is an object"),
        (lambda path: path.write_bytes(b'{"data": 3}'), "'data' is a number; accepted is an object of entries"),
    ],
)
@pytest.mark.parametrize("more", [(), ("--node", "0")])
def test_a_dump_that_is_none_is_one_error(
    damage: Callable[[Path], object], text: str, more: tuple[str, ...], sides: Sides, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(sides.golden / "dump.json")
    assert sides.compare("--exit-code", *more) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("msprobe: ") and text in printed.err.splitlines()[-1] and printed.out == ""
    assert not sides.output.exists()


def test_exit_statuses_of_a_node(sides: Sides) -> None:
    assert sides.compare("--node", "0", "--exit-code") == 0
    assert sides.compare("--node", "no such node", "--exit-code") == 2
    sides = sides._replace(target=sides.target.with_name("wrong"))
    assert sides.compare("--node", "0", "--exit-code") == 0
    assert sides.compare("--node", "2", "--exit-code") == 1
    assert sides.compare("--node", "2") == 0
    cut(sides.target / DATA / "Cell.2.Dense.forward.0.output.0.npy")
    assert sides.compare("--node", "2", "--exit-code") == 1


def test_a_wrong_file_that_every_later_use_refutes_is_told(sides: Sides, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = sides.target / DATA / OURS
    np.save(wrong, np.load(wrong)[::-1])  # its figures are those recorded
    assert sides.compare("--node", "0", "--exit-code") == 0
    text = capsys.readouterr().out
    assert "agrees: the recorded value differs, but every later use of the tensor agrees" in text


def test_a_wrong_file_that_dump_json_refutes_is_told(sides: Sides, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = sides.target / DATA / OURS
    np.save(wrong, np.load(wrong) + 1)
    assert sides.compare("--node", "0", "--exit-code") == 0
    assert f"Real data not compared, as a file contradicts dump.json: {wrong}: its Max is" in capsys.readouterr().out
