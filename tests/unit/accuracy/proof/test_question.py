"""What a report asks about, and what is said where it names no call or no dumps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from msprobe_ms.accuracy.proof.question import question_of, question_of_dump, question_of_dumps
from msprobe_ms.comparison.run import Options
from msprobe_ms.support.errors import UsageError


def dump(folder: Path, *names: str) -> Path:
    folder.mkdir()
    leaf = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.0, "Min": 0.0, "Mean": 0.5,
            "Norm": 1.0}  # fmt: skip
    entries = {f"{name}.forward": {"input_args": [leaf], "input_kwargs": {}, "output": [leaf]} for name in names}
    file = folder / "dump.json"
    file.write_text(json.dumps({"task": "statistics", "level": "L1", "framework": "pytorch", "data": entries}))
    return file


def report(folder: Path, stamp: str, **content: Any) -> Path:
    file = folder / f"compare_summary_{stamp}.json"
    file.write_text(json.dumps(content))
    return file


@pytest.fixture
def dumps(tmp_path: Path) -> dict[str, str]:
    names = ("Torch.abs.0", "Torch.exp.0")
    return {side: str(dump(tmp_path / side, *names)) for side in ("target", "golden")}


def origin(name: str) -> dict[str, str]:
    return {"target": f"{name}.forward.output.0", "golden": f"{name}.forward.output.0"}


def test_the_latest_report_of_a_folder_and_its_first_origin(tmp_path: Path, dumps: dict[str, str]) -> None:
    report(tmp_path, "20260101000000", dumps=dumps, origins=[origin("Torch.abs.0")])
    report(tmp_path, "20260202000000", dumps=dumps, origins=[origin("Torch.exp.0"), origin("Torch.abs.0")])
    asked = question_of(tmp_path, None, Options())
    assert (asked.entry, asked.counterpart) == ("Torch.exp.0.forward", "Torch.exp.0.forward")
    assert asked.target == Path(dumps["target"])
    assert question_of(tmp_path, "Torch.abs.0", Options()).entry == "Torch.abs.0.forward"


def test_of_a_consistent_report_there_is_nothing_to_prove(tmp_path: Path, dumps: dict[str, str]) -> None:
    file = report(tmp_path, "20260101000000", dumps=dumps, origins=[], verdict="consistent")
    with pytest.raises(UsageError) as consistent:
        question_of(tmp_path, None, Options())
    assert str(consistent.value) == (
        f"{file}: the report is CONSISTENT, there is nothing to prove; to prove a call all the same, choose it with "
        "--node"
    )
    report(tmp_path, "20260101000000", dumps=dumps, origins=[], verdict="divergent")
    with pytest.raises(UsageError, match="names no origin of an error; choose a call with --node"):
        question_of(tmp_path, None, Options())


def test_of_many_ranks_the_one_to_look_at_first(tmp_path: Path, dumps: dict[str, str]) -> None:
    stamp = "20260101000000"
    pairs = [{"step": step, "rank": rank, "verdict": "divergent" if step else "consistent",
              "reports": f"step{step}_{rank}"} for step in (0, 1) for rank in ("rank0", "rank1")]  # fmt: skip
    report(tmp_path, stamp, ranks=pairs, first_step=1, first_rank={"ranks": ["rank1"]})
    report(tmp_path, f"step0_rank0_{stamp}", dumps=dumps, origins=[])
    report(tmp_path, f"step1_rank1_{stamp}", dumps=dumps, origins=[origin("Torch.exp.0")])
    asked = question_of(tmp_path, None, Options())
    assert asked.entry == "Torch.exp.0.forward"
    assert asked.report == tmp_path / f"compare_summary_step1_rank1_{stamp}.json"


@pytest.mark.parametrize("ranks", [[], [3], [{"verdict": "divergent"}], [{"verdict": "divergent", "reports": "../x"}]])
def test_of_many_ranks_none_of_which_diverges_nothing_is_asked(tmp_path: Path, ranks: list[Any]) -> None:
    report(tmp_path, "20260101000000", ranks=ranks, first_rank={"ranks": 3})
    with pytest.raises(UsageError, match="no pair of dumps in it diverges"):
        question_of(tmp_path, None, Options())


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"origins": []}, "does not name the dumps"),
        ({"origins": [], "dumps": {"target": 3}}, "does not name the dumps"),
        ([], "holds a list, no object"),
    ],
)
def test_reports_that_ask_nothing_are_refused(tmp_path: Path, content: Any, says: str) -> None:
    file = tmp_path / "compare_summary_1.json"
    file.write_text(json.dumps(content))
    with pytest.raises(UsageError, match=says):
        question_of(file, None, Options())


def test_a_report_without_origins_and_a_dump_need_a_name(tmp_path: Path, dumps: dict[str, str]) -> None:
    file = report(tmp_path, "20260101000000", dumps=dumps, origins=[])
    with pytest.raises(UsageError, match="choose a call with --node"):
        question_of(file, None, Options())
    with pytest.raises(UsageError, match="name the call with --node"):
        question_of(Path(dumps["target"]), None, Options())
    with pytest.raises(UsageError, match="no such file"):
        question_of(tmp_path / "nowhere", None, Options())


def test_a_call_of_one_dump_and_of_two(dumps: dict[str, str]) -> None:
    target, golden = Path(dumps["target"]), Path(dumps["golden"])
    assert question_of_dump(target, "Torch.abs.0.forward.output.0").entry == "Torch.abs.0.forward"
    assert question_of_dump(target, "exp").entry == "Torch.exp.0.forward"
    with pytest.raises(UsageError, match="has an entry, a value or a module of this name"):
        question_of_dump(target, "expp")
    asked = question_of_dumps(target, golden, "Torch.exp.0", Options())
    assert (asked.entry, asked.counterpart) == ("Torch.exp.0.forward", "Torch.exp.0.forward")
    assert asked.counterparts["Torch.abs.0.forward"] == "Torch.abs.0.forward"
