"""The command line as a user types it: what it prints, writes and exits with."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import openpyxl
import pytest
from compare_parts import scale_against_good
from large_files import large_npy
from repository import DATA

from msprobe_ms.cli.main import main

PROGRAM = [sys.executable, "-m", "msprobe_ms"]


@pytest.fixture
def both(tmp_path: Path) -> tuple[Path, Path]:
    """A dump with one weight changed, and the good one; written by msprobe 1.1.0."""
    scale_against_good(tmp_path / "dumps")
    return tmp_path / "dumps" / "scale", tmp_path / "dumps" / "good"


@pytest.fixture
def compare_json(tmp_path: Path, both: tuple[Path, Path]) -> Path:
    path = tmp_path / "compare.json"
    path.write_text(json.dumps({"npu_path": str(both[0] / "dump.json"), "bench_path": str(both[1] / "dump.json")}))
    return path


def titles(folder: Path) -> list[str]:
    (table,) = folder.glob("compare_result_*.xlsx")
    return [cell.value for cell in next(openpyxl.load_workbook(table).active.iter_rows(max_row=1))]


def test_the_new_form_says_where_the_error_begins(
    both: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "-tp", str(both[0]), "-gp", str(both[1]), "-o", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "710 values compared (statistics)" in printed and "; paired: 100 % of calls" in printed
    assert "DIVERGENT: the error begins in forward, at\n  Functional.layer_norm.2.forward.input.2\n" in printed
    assert "called at File" in printed and "norm1" in printed
    (summary,) = (tmp_path / "out").glob("compare_summary_*.json")
    content = json.loads(summary.read_text())
    counts = ["matched", "unmatched_target", "unmatched_golden", "not_compared", "said_unmatched", "fused"]
    counts += ["damage", "ends"]
    pairing = ["paired_modules", "paired_calls", "unmatched_modules", "compared_by_outputs", "unmatched_values"]
    pairing += ["explained", "pairs"]
    pairing += ["proposed_mapping", "files", "dumps"]
    assert list(content) == ["mode", "verdict", *counts, "inherits", "origins", "random_operations", *pairing]
    assert (content["verdict"], content["matched"]) == ("divergent", 710)
    assert " ".join(content["origins"][0]) == "target golden state kind stage reason details required_tolerance metrics"
    assert titles(tmp_path / "out")[2:5] == ["Result", "Reason", "Inherited From"]
    (advice,) = (tmp_path / "out").glob("advisor_*.txt")
    detection, line, suspect = advice.read_text().splitlines()[:3]
    assert detection == "Detection Type: inconsistent input"
    assert suspect == "Suspect Nodes: Functional.layer_norm.2.forward.input.2"
    (table,) = (tmp_path / "out").glob("compare_result_*.xlsx")
    cell = openpyxl.load_workbook(table).active.cell(int(line.removeprefix("Row in compare_result: ")), 1)
    assert (cell.value, cell.fill.fgColor.rgb) == ("Functional.layer_norm.2.forward.input.2", "FFFF9C9C")


def test_the_old_form_writes_the_columns_of_its_time(compare_json: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["-f", "pytorch", "compare", "-i", str(compare_json), "-o", str(out), "-s", "-f"]) == 0
    assert len(titles(out)) == 25 and "NPU_Stack_Info" in titles(out)
    assert "Requires_grad Consistent" not in titles(out)
    assert len(list(out.glob("advisor_*.txt"))) == 1


def test_compare_only_writes_no_advice(compare_json: Path, tmp_path: Path) -> None:
    assert main(["compare", "-i", str(compare_json), "-o", str(tmp_path / "out"), "-c", "--csv"]) == 0
    assert sorted(path.suffix for path in (tmp_path / "out").iterdir()) == [".csv", ".html", ".json"]


def test_no_html_writes_no_page(compare_json: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "-i", str(compare_json), "-o", str(tmp_path / "out"), "-c", "--no-html"]) == 0
    assert sorted(path.suffix for path in (tmp_path / "out").iterdir()) == [".json", ".xlsx"]
    assert f"report: {tmp_path}/out/compare_result_" in capsys.readouterr().out


def test_exit_code(both: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    assert main(["compare", "-tp", str(both[0]), "-gp", str(both[1]), "-o", out, "--exit-code"]) == 1
    assert main(["compare", "-tp", str(both[1]), "-gp", str(both[1]), "-o", out, "--exit-code"]) == 0
    assert "CONSISTENT: all values agree within the rounding error of their dtypes" in capsys.readouterr().out


def test_reports_are_never_overwritten(both: tuple[Path, Path], tmp_path: Path) -> None:
    for _ in range(3):
        main(["compare", "-tp", str(both[1]), "-gp", str(both[1]), "-o", str(tmp_path / "out"), "--csv"])
    assert len(list((tmp_path / "out").glob("compare_result_*.csv"))) == 3


@pytest.mark.processes
def test_steps_with_several_ranks_are_compared_rank_by_rank(
    both: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for side, ranks in (("mine", ("rank0", "rank2", "rank10")), ("theirs", ("rank0", "rank10", "rank11"))):
        for rank in ranks:
            folder = tmp_path / side / "step0" / rank
            folder.mkdir(parents=True)
            (folder / "dump.json").write_bytes((both[1] / "dump.json").read_bytes())
    out = tmp_path / "out"
    assert (
        main(["compare", "-tp", str(tmp_path / "mine/step0"), "-gp", str(tmp_path / "theirs/step0"), "-o", str(out)])
        == 0
    )
    assert sorted(path.name.split("_")[2] for path in out.glob("compare_result_*.xlsx")) == ["rank0", "rank10"]
    assert re.search(r"^step0 rank0: CONSISTENT: \d+ values compared$", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["compare", "-o", "out"], "compare: -i, or -tp and -gp is missing; see msprobe compare -h"),
        (["compare", "-tp", "x"], "compare: -gp is missing"),
        (["compare", "-tp", "nowhere", "-gp", "nowhere"], "nowhere: no such file or folder; accepted are a dump.json"),
        (["compare", "-i", "nowhere.json"], "nowhere.json: cannot be read: No such file or directory; expected {"),
        (["compare", "-i", "a", "-tp", "b"], "compare: give either -i or -tp and -gp, not both"),
        (["recover", "nowhere"], "nowhere: not a folder; give a dump folder"),
    ],
)
def test_mistakes_are_one_line_and_exit_with_two(
    arguments: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(f"msprobe: {text}") and printed.err.count("\n") == 1
    assert printed.out == ""


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{", "not valid JSON"),
        ("[]", "holds a list"),
        ('{"npu_path": 3}', "npu_path: 3 is not accepted"),
        ('{"npu_path": "a"}', "bench_path: null is not accepted"),
    ],
)
def test_a_wrong_compare_json_is_named(
    content: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "compare.json"
    path.write_text(content)
    assert main(["-f", "mindspore", "compare", "-i", str(path), "-o", str(tmp_path / "out")]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"msprobe: {path}: {text}") and 'expected {"npu_path"' in printed


@pytest.mark.processes
def test_the_command_needs_no_framework() -> None:
    code = (
        "import sys\n"
        "sys.modules['mindspore'] = sys.modules['torch'] = None\n"
        "from msprobe_ms.cli import main\n"
        "sys.exit(main(['compare', '-h']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "--target_path" in done.stdout


def test_what_was_not_compared_is_not_called_consistent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mapping = DATA / "mapping"
    arguments = ["compare", "-tp", str(mapping / "encoder_mindspore_L0"), "-gp", str(mapping / "encoder_pytorch_L0")]
    assert main([*arguments, "-o", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "both sides have unpaired modules, which were not compared: pair them first" in printed
    assert "to pair these modules, compare again with -lm (without a file)" in printed
    (summary,) = tmp_path.glob("compare_summary_*.json")
    proposed = "\n".join(json.loads(summary.read_text())["proposed_mapping"])
    assert "EncoderLayer:\n  attention: self_attention  # " in proposed
    assert main([*arguments, "-o", str(tmp_path), "-lm", str(mapping / "encoder_layer_mapping.yaml")]) == 0
    assert "INCOMPLETE" not in capsys.readouterr().out


def test_a_mapping_file_that_lacks_a_line_is_named_with_the_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mapping = DATA / "mapping"
    lines = (mapping / "encoder_layer_mapping.yaml").read_text().splitlines(keepends=True)
    mine = tmp_path / "mine.yaml"
    mine.write_text("".join(line for line in lines if "projection" not in line))
    sides = ["-tp", str(mapping / "encoder_mindspore_L0"), "-gp", str(mapping / "encoder_pytorch_L0")]
    assert main(["compare", *sides, "-o", str(tmp_path / "out"), "-lm", str(mine)]) == 0
    printed = capsys.readouterr().out
    assert "INCOMPLETE" in printed and f"to pair these modules, correct {mine}; these lines pair them" in printed
    assert "  FeedForward:\n    projection: dense_4h_to_h  # " in printed
    (advice,) = (tmp_path / "out").glob("advisor_*.txt")
    assert f"To pair these modules, correct {mine}." in advice.read_text()


def test_nothing_in_common_gets_no_good_advice(
    both: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = DATA / "mapping" / "encoder_mindspore_L0" / "dump.json"
    names = {"npu_path": str(other), "bench_path": str(both[1] / "dump.json")}
    (tmp_path / "compare.json").write_text(json.dumps(names))
    assert main(["compare", "-i", str(tmp_path / "compare.json"), "-o", str(tmp_path / "out"), "--exit-code"]) == 1
    printed = capsys.readouterr().out
    assert "the target was dumped at level L0, the golden at L1" in printed
    assert "DIVERGENT: nothing in the two dumps could be paired" in printed
    assert not list((tmp_path / "out").glob("advisor*"))


def test_a_killed_dump_is_not_taken_for_a_whole_one(
    both: tuple[Path, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    (both[0] / "dump.journal").write_bytes(b"")
    os.utime(both[0] / "dump.json", (1, 1))
    assert main(["compare", "-tp", str(both[0]), "-gp", str(both[1]), "-o", str(tmp_path / "out")]) == 0
    assert f"run msprobe recover {both[0]}" in caplog.text
    (both[0] / "dump.json").unlink()
    assert main(["compare", "-tp", str(both[0]), "-gp", str(both[1]), "-o", str(tmp_path / "out")]) == 2
    assert "a journal but no dump.json" in capsys.readouterr().err


@pytest.mark.processes
def test_a_reader_that_leaves_early_is_no_error(both: tuple[Path, Path], tmp_path: Path) -> None:
    command = f"{sys.executable} -m msprobe_ms compare -tp {both[0]} -gp {both[1]} -o {tmp_path}/out | true"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.processes
def test_help_is_printed_without_a_command() -> None:
    done = subprocess.run(PROGRAM, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "compare" in done.stdout


@pytest.mark.parametrize("command", [("compare", "-tp", "{}", "-gp", "{}"), ("recover", "{}"), ("compare", "-i", "{}")])
def test_a_path_that_cannot_even_be_looked_at_is_an_error_in_one_line(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    name = "9" * 5000
    assert main([part.format(name) for part in command]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "File name too long" in told


@pytest.mark.parametrize(
    "command", ["convert {0} --to txt", "compare -tp {0} -gp {0}", "compare -tp . -gp . -cl token"]
)
def test_what_is_larger_than_the_memory_is_no_divergence(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    file = large_npy(tmp_path / "logits_a_0.npy")
    assert main([*command.format(file).split(), "-o", "out"]) == 2
    assert "not enough memory" in "".join(capsys.readouterr())


@pytest.mark.processes
@pytest.mark.parametrize(("arguments", "spared"), [("", "True"), ("[]", "False")])
def test_a_process_of_the_command_alone_ends_without_a_search_for_cycles(arguments: str, spared: str) -> None:
    """A script that calls the command may leave cycles that hold what is yet to be written."""
    code = (
        "import atexit, gc, sys\nfrom msprobe_ms.cli import main\n"
        "atexit.register(lambda: print(gc.get_freeze_count() > 0, file=sys.stderr))\n"
        f"main({arguments})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.split()[-1] == spared
