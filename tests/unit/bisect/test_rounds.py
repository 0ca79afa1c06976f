"""A step narrowed down to its first wrong call, in few rounds, also where it was cut off, with the files as before."""

from __future__ import annotations

import csv
import json
import math
import sys
from pathlib import Path

import pytest
from repository import ROOT
from sparse_recorder import record

from msprobe_ms.bisect import rounds
from msprobe_ms.bisect.decide import Decision
from msprobe_ms.bisect.rounds import Side, Told, bisect
from msprobe_ms.cli import main
from msprobe_ms.support.errors import UsageError

RECORDER = str(ROOT / "tests" / "make" / "sparse_recorder.py")
CALLS = 3_000


def config(path: Path) -> Path:
    written = {"task": "statistics", "dump_path": "elsewhere", "level": "L1", "statistics": {"list": []}}
    path.write_text(json.dumps(written))
    return path


def narrowed(
    folder: Path, wrong: int, *, fades: bool = False, calls: int = CALLS, skip: int = 64
) -> tuple[Decision, list[Told]]:
    sides = (
        Side("target", config(folder / "a.json"), [str(calls), str(wrong), *(["1"] if fades else [])]),
        Side("golden", config(folder / "b.json"), [str(calls)]),
    )
    return bisect(sides, folder / "out", skip=skip, factor=8, resume=False, tell=lambda line: None)


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Record without a process a round: the commands are the recorder's arguments."""

    def run(side: Side) -> int:
        calls, wrong, fades, more = (*map(int, side.command), *(-1, 0, -1)[len(side.command) - 1 :])
        record(side.config, calls, wrong, bool(fades), more)
        return 0

    monkeypatch.setattr(rounds, "_run", run)


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("fades", [False, True])
@pytest.mark.parametrize("wrong", [0, 1, 62, 63, 64, 700, 1535, 2000, 2998, 2999])
def test_the_wrong_call_is_found_in_few_rounds(tmp_path: Path, wrong: int, fades: bool) -> None:
    decision, told = narrowed(tmp_path, wrong, fades=fades)
    assert decision.found == f"Torch.add.{wrong}.forward"
    assert len(told) <= math.ceil(math.log(CALLS, 8)) + 1
    if not fades:
        whole = tmp_path / "whole"
        written = {"task": "statistics", "dump_path": str(whole), "statistics": {"scope": [], "skip": 0}}
        (tmp_path / "whole.json").write_text(json.dumps(written))
        record(tmp_path / "whole.json", CALLS, -1, False)
        (dump,) = whole.rglob("dump.json")
        assert sum(each.bytes for each in told) < 2 * dump.stat().st_size / 10


@pytest.mark.usefixtures("in_this_process")
def test_each_round_has_a_report_of_both_sides_values(tmp_path: Path) -> None:
    _, told = narrowed(tmp_path, 700, calls=900)
    for each in told:
        with (tmp_path / "out" / f"round{each.round}" / "accuracy_report.csv").open(
            newline="", encoding="utf-8"
        ) as opened:
            rows = list(csv.DictReader(opened))
        assert list(rows[0]) == [
            "operator", "tensor", "dtype0", "dtype1", "shape0", "shape1", "max0", "max1", "min0", "min1", "diff1",
            "diff2", "stack",
        ]  # fmt: skip
        outputs = [row for row in rows if row["tensor"] == "output.0"]
        assert len(outputs) == each.calls
        wrong = next(row for row in outputs if float(row["diff1"]) > 0)
        assert float(wrong["max1"]) - float(wrong["max0"]) == pytest.approx(1e-3)
    assert wrong["max0"] == "1.701"  # call 700, in the last round


@pytest.mark.usefixtures("in_this_process")
def test_a_step_that_is_right_has_nothing(tmp_path: Path) -> None:
    decision, told = narrowed(tmp_path, -1)
    assert (decision.found, [each.skip for each in told]) == ("", [64, 1, 8, 1, 1])
    assert decision.said == "nothing differs in the step"


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    ("target", "golden", "found"),
    [
        (["640"], ["512"], "Torch.add.512.forward"),
        (["512"], ["640"], "Torch.add.512.forward"),
        (["2000", "-1", "0", "700"], ["2000"], "Torch.clone.0.forward"),
        (["2000"], ["2000", "-1", "0", "63"], "Torch.clone.0.forward"),
        (["2000", "30", "0", "700"], ["2000"], "Torch.add.30.forward"),
        (["2000", "900", "0", "700"], ["2000"], "Torch.clone.0.forward"),
    ],
)
def test_a_call_that_one_side_alone_has_is_the_finding(
    tmp_path: Path, target: list[str], golden: list[str], found: str
) -> None:
    sides = (Side("target", config(tmp_path / "a.json"), target), Side("golden", config(tmp_path / "b.json"), golden))
    decision, told = bisect(sides, tmp_path / "out", skip=64, factor=8, resume=False, tell=lambda line: None)
    assert decision.found == found, told
    assert len(told) <= 5


@pytest.mark.processes
def test_a_bisection_that_was_cut_off_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = [config(tmp_path / name).read_bytes() for name in ("a.json", "b.json")]
    command = [sys.executable, RECORDER]
    asked = ["bisect", "--config", str(tmp_path / "a.json"), "--golden-config", str(tmp_path / "b.json"), "-o"]
    asked += [str(tmp_path / "out"), "--", *command, str(tmp_path / "a.json"), "900", "700", "---", *command]
    asked += [str(tmp_path / "b.json"), "900"]
    assert main(asked) == 0
    shown = capsys.readouterr().out
    assert "FOUND: Torch.add.700.forward: its inputs agree, its outputs differ" in shown
    assert [(tmp_path / name).read_bytes() for name in ("a.json", "b.json")] == before
    state = json.loads((tmp_path / "out" / "bisect.json").read_text())
    whole = len(state["rounds"])
    # As it was after the first round.
    second = state["rounds"][1]
    state["next"] = {
        "skip": second["skip"], "after": dict.fromkeys(("target", "golden"), second["after"]),
        "until": dict.fromkeys(("target", "golden"), second["until"]),
    }  # fmt: skip
    state["rounds"], state["goods"] = state["rounds"][:1], state["goods"][:1]
    (tmp_path / "out" / "bisect.json").write_text(json.dumps(state))
    again = tmp_path / "out" / "round1"
    again.rename(tmp_path / "gone")
    for number in range(2, whole):
        (tmp_path / "out" / f"round{number}").rename(tmp_path / f"gone{number}")
    assert main([*asked[:1], "--resume", *asked[1:]]) == 0
    assert "FOUND: Torch.add.700.forward" in capsys.readouterr().out
    assert len(json.loads((tmp_path / "out" / "bisect.json").read_text())["rounds"]) == whole
    assert main(asked) == 2
    assert "holds another bisection" in capsys.readouterr().err


def test_two_dumps_alone_say_what_to_record_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, wrong in (("a", 300), ("b", -1)):
        written = {"task": "statistics", "dump_path": str(tmp_path / name), "statistics": {"scope": [], "skip": 64}}
        (tmp_path / f"{name}.json").write_text(json.dumps(written))
        record(tmp_path / f"{name}.json", 600, wrong, False)
    asked = ["bisect", "--next", str(tmp_path / "a" / "step0"), str(tmp_path / "b" / "step0"), "--skip", "64"]
    assert main(asked) == 3
    told = json.loads(capsys.readouterr().out)
    assert told["target"] == {"scope": ["Torch.add.255.forward", "Torch.add.319.forward"], "skip": 8}
    same = ["bisect", "--next", str(tmp_path / "b" / "step0"), str(tmp_path / "b" / "step0")]
    assert main([*same, "--skip", "1", "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "accuracy_report.csv").read_text("utf-8").startswith("operator,tensor,dtype0")
    assert capsys.readouterr().out.startswith("NOT FOUND: nothing differs")


@pytest.mark.processes
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ([sys.executable, "-c", "pass"], "ended with 0 and recorded nothing in"),
        (["/no/such/program"], "cannot be run: No such file or directory"),
    ],
)
def test_a_command_that_records_nothing_is_named(tmp_path: Path, command: list[str], message: str) -> None:
    sides = (Side("target", config(tmp_path / "a.json"), command), Side("golden", config(tmp_path / "b.json"), command))
    with pytest.raises(UsageError, match=message):
        bisect(sides, tmp_path / "out", skip=64, factor=8, resume=False, tell=lambda line: None)
    assert json.loads((tmp_path / "a.json").read_text())["dump_path"] == "elsewhere"
