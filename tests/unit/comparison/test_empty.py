"""A dump without calls is not compared, and the error says which side it is and what makes a dump empty."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from msprobe_ms import compare
from msprobe_ms.cli.main import main
from msprobe_ms.comparison.empty import refuse_empty
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import CompareError
from msprobe_ms.support.translation import speaking

TENSOR = {
    "type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.0, "Min": 1.0, "Mean": 1.0, "Norm": 1.4,
    "requires_grad": False,
}  # fmt: skip
CALL = {"input_args": [TENSOR], "input_kwargs": {}, "output": [TENSOR]}
GOOD = {"Functional.relu.0.forward": CALL, "Module.fc.Linear.forward.0": CALL}


def written(folder: Path, entries: dict[str, object], task: str = "statistics", level: str = "mix") -> Path:
    folder.mkdir(parents=True)
    head = {"task": task, "level": level, "framework": "pytorch", "dump_data_dir": None}
    (folder / "dump.json").write_text(json.dumps({**head, "data": entries}))
    return folder / "dump.json"


@pytest.mark.parametrize("options", [[], ["-lm"], ["--node", "fc"]])
@pytest.mark.parametrize("side", ["target", "golden"])
def test_the_command_names_the_empty_side(
    side: str, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty, good = written(tmp_path / "empty", {}), written(tmp_path / "good", GOOD)
    both = (empty, good) if side == "target" else (good, empty)
    output = tmp_path / "out"
    assert main(["compare", "-tp", str(both[0]), "-gp", str(both[1]), "-o", str(output), *options]) == 2
    told = capsys.readouterr()
    assert f"the {side} is empty: {empty} holds no call. An exception ended its step early" in told.err
    assert "DIVERGENT" not in told.out + told.err
    assert not list(output.glob("compare_result*"))


def test_the_error_quotes_the_log_in_the_language_of_the_user(tmp_path: Path) -> None:
    empty = written(tmp_path / "empty", {})
    with pytest.raises(CompareError, match='look for "nothing was recorded", or for a line'):
        compare(empty, empty)
    with speaking("zh"), pytest.raises(CompareError, match="请查找“没有采集到内容”，或以"):
        compare(empty, empty)


@pytest.mark.processes
def test_of_several_pairs_the_empty_one_is_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for side in ("a", "b"):
        for rank in (0, 1):
            written(tmp_path / side / "step0" / f"rank{rank}", {} if (side, rank) == ("b", 1) else GOOD)
    command = ["compare", "-tp", str(tmp_path / "a"), "-gp", str(tmp_path / "b"), "-o", str(tmp_path / "out")]
    assert main(command) == 2
    assert "rank1: NOT COMPARED: the golden is empty" in capsys.readouterr().out


def test_from_python_it_raises(tmp_path: Path) -> None:
    empty = written(tmp_path / "empty", {})
    with pytest.raises(CompareError, match="both dumps are empty: target"):
        compare(empty, empty)


def test_a_dump_of_the_loss_alone_is_empty(tmp_path: Path) -> None:
    good = read_dump(written(tmp_path / "good", GOOD))
    loss = {"loss.0.debug": TENSOR}
    with pytest.raises(CompareError, match="the target is empty"):
        refuse_empty(read_dump(written(tmp_path / "loss", loss)), good)
    saved = read_dump(written(tmp_path / "saved", loss, level="debug"))
    refuse_empty(saved, saved)


def test_a_task_that_records_faults_alone_found_none(tmp_path: Path) -> None:
    empty = read_dump(written(tmp_path / "empty", {}, task="overflow_check"))
    with pytest.raises(CompareError, match="Task overflow_check records only calls with a fault, and found none"):
        refuse_empty(read_dump(written(tmp_path / "good", GOOD)), empty)


def test_a_dump_that_was_cut_off_is_no_empty_one(tmp_path: Path) -> None:
    cut = replace(read_dump(written(tmp_path / "cut", {})), damage="its process was killed")
    refuse_empty(cut, cut)


def test_modules_that_only_one_side_has_name_the_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    modules = written(tmp_path / "modules", GOOD)
    functions = written(tmp_path / "functions", {"Functional.relu.0.forward": CALL}, level="L1")
    main(["compare", "-tp", str(modules), "-gp", str(functions), "-o", str(tmp_path / "out"), "-lm", "--no-html"])
    assert "-lm pairs modules, and the golden holds none (its level is L1)" in caplog.text


def test_an_empty_dump_leads_to_the_halves_beside_it(tmp_path: Path) -> None:
    empty, good = written(tmp_path / "step0" / "proc1", {}), written(tmp_path / "graph" / "step0" / "proc2", GOOD)
    with pytest.raises(CompareError) as raised:
        compare(empty.parent, good)
    assert (
        "holds no call. Of that step what ran in graphs and what ran outside of them have a folder each, here "
        in str(raised.value)
    )
    assert "graph/step0; give one of them" in str(raised.value)
    assert compare(tmp_path / "step0", good).verdict == "consistent", "the later process is taken"
