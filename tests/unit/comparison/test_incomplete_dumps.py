"""Dumps that are not whole: what is in them may agree, but they are never told to be consistent."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from rank_dumps import write_run

import msprobe_ms
from msprobe_ms.cli.main import main
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.dump.writing.contents import ENTRY, ENVELOPE, Envelope, encode_entry, encode_envelope
from msprobe_ms.dump.writing.export import recover
from msprobe_ms.dump.writing.journal import JournalWriter
from msprobe_ms.support.folder import Folder


@pytest.fixture
def cut(tmp_path: Path) -> tuple[Path, Path]:
    """A dump of one rank whose dump.json was cut off after three of its four entries, and the whole one."""
    golden = write_run(tmp_path / "golden", ranks=1) / "step0/rank0"
    target = shutil.copytree(golden, tmp_path / "target/step0/rank0")
    text = (golden / "dump.json").read_text()
    (target / "dump.json").write_text(text[: text.index("Cell.head") + 60])
    return target, golden


@pytest.mark.parametrize("turned", [False, True])
def test_a_dump_that_was_cut_off_is_incomplete(
    cut: tuple[Path, Path], turned: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, golden = reversed(cut) if turned else cut
    assert main(["compare", "-tp", str(target), "-gp", str(golden), "-o", str(tmp_path / "out"), "--exit-code"]) == 0
    printed, side = capsys.readouterr().out, "golden" if turned else "target"
    assert "INCOMPLETE: what was compared agrees, but a dump is not whole" in printed
    told = f"{side}: {cut[0] / 'dump.json'}: not valid JSON"
    assert told in printed
    (file,) = (tmp_path / "out").glob("compare_summary_*.json")
    content = json.loads(file.read_text())
    assert content["verdict"] == "incomplete"
    assert content["damage"][0].startswith(told)
    with pytest.raises(AssertionError, match=r"not valid JSON.*the 3 entries before it are read"):
        msprobe_ms.assert_consistent(target, golden)


_FIGURES = {"Max": 1.0, "Min": 0.0, "Mean": 0.5, "Norm": 1.5}
_TENSOR = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 2], **_FIGURES}


def _dump(folder: Path, leaf: dict[str, object]) -> Path:
    """A dump of two calls, of which the first gave out ``leaf``."""
    folder.mkdir()
    data = {f"Torch.relu.{call}.forward": {"input_args": [_TENSOR], "output": [_TENSOR]} for call in range(2)}
    data["Torch.relu.0.forward"]["output"] = [leaf]  # type: ignore[list-item]
    text = json.dumps({"task": "statistics", "level": "L1", "framework": "pytorch", "data": data})
    (folder / "dump.json").write_text(text)
    return folder


@pytest.mark.parametrize(
    "nonsense",
    [
        {"Max": "abc"},
        {"Norm": [1.5]},
        dict.fromkeys(_FIGURES, "abc"),
        {"shape": [-1, -5]},
        {"shape": [2**62, 2**62]},
        {"dtype": 5},
        {"data_name": "Torch.relu.0.forward.output.0.npy", **dict.fromkeys(_FIGURES)},
    ],
    ids=str,
)
def test_a_value_that_cannot_be_compared_is_not_told_to_agree(nonsense: dict[str, object], tmp_path: Path) -> None:
    target, golden = (_dump(tmp_path / side, {**_TENSOR, **nonsense}) for side in ("target", "golden"))
    result = msprobe_ms.compare(target, golden)
    assert (result.verdict, result.summary["not_compared"]) == ("incomplete", 1)
    assert "but 1 value that was recorded could not be compared" in str(result)
    assert "3 values compared" in str(result)
    assert "Torch.relu.0.forward.output.0" in str(result)
    beside_whole = msprobe_ms.compare(target, _dump(tmp_path / "whole", _TENSOR))
    assert beside_whole.verdict != "consistent"


@pytest.mark.parametrize(
    ("figure", "verdict"), [("NaN", "divergent"), ("-inf", "divergent"), ("1.0", "consistent"), ("abc", "incomplete")]
)
def test_a_number_that_was_written_as_text_is_compared(figure: str, verdict: str, tmp_path: Path) -> None:
    target = _dump(tmp_path / "target", {**_TENSOR, "Max": figure})
    assert msprobe_ms.compare(target, _dump(tmp_path / "golden", _TENSOR)).verdict == verdict


def test_tensors_without_elements_have_nothing_to_compare(tmp_path: Path) -> None:
    empty = {**_TENSOR, "shape": [0], **dict.fromkeys(_FIGURES), "md5": "00000000"}
    without = {name: value for name, value in empty.items() if name != "md5"}
    assert msprobe_ms.compare(_dump(tmp_path / "a", empty), _dump(tmp_path / "b", without)).verdict == "consistent"


@pytest.mark.usefixtures("one_worker")
@pytest.mark.processes
def test_damage_stands_in_the_line_of_its_rank(cut: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    root = cut[0].parent.parent
    whole = write_run(root.parent / "runs", ranks=10)
    broken = shutil.copytree(whole, root.parent / "broken")
    text = (broken / "step0/rank3/dump.json").read_text()
    (broken / "step0/rank3/dump.json").write_text(text[: text.index("Cell.head") + 60])
    out = root.parent / "out"
    assert main(["compare", "-tp", str(broken), "-gp", str(whole), "-o", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "INCOMPLETE: 10 pairs of dumps: 9 consistent, 1 incomplete" in printed
    assert "step0 rank3: INCOMPLETE; target: " in printed
    (file,) = (each for each in out.glob("compare_summary_*.json") if each.stem.count("_") == 2)
    lines = json.loads(file.read_text())["ranks"]
    assert [bool(line["damage"]) for line in lines] == [number == 3 for number in range(10)]


def test_a_recovered_dump_knows_that_it_is_not_whole(tmp_path: Path) -> None:
    golden = write_run(tmp_path / "golden", ranks=1) / "step0/rank0"
    entries = json.loads((golden / "dump.json").read_text())["data"]
    target = _killed(tmp_path / "target/step0/rank0", dict(list(entries.items())[:3]))
    (found,) = recover(target)
    assert (found.entries, found.problem) == (3, "")
    assert json.loads((target / "dump.json").read_text())["recovered"] is True
    assert read_dump(target).extra["recovered"] is True
    assert "recovered after its process was killed" in read_dump(target).damage
    result = msprobe_ms.compare(target, golden)
    assert (result.verdict, result.summary["unmatched_target"]) == ("incomplete", 0)
    assert "recovered after its process was killed" in str(result)


@pytest.mark.usefixtures("one_worker")
@pytest.mark.processes
def test_a_step_that_was_never_finished_is_not_the_first_that_diverges(tmp_path: Path) -> None:
    golden = write_run(tmp_path / "golden", ranks=1, steps=2)
    target = shutil.copytree(golden, tmp_path / "target")
    shutil.rmtree(target / "step1")
    rank = _killed(target / "step1/rank0", {})
    (rank / "dump.json").write_text('{"task": "statistics", "level": "mix", "framework": "mindspore", "data": {}}')
    os.utime(rank / "dump.json", (1, 1))
    result = msprobe_ms.compare(target, golden)
    assert [found.verdict for found in result.found] == ["consistent", "incomplete"]
    assert (result.verdict, result.total.first_step, result.first) == ("incomplete", None, None)
    assert f"run msprobe recover {rank}" in str(result)
    assert "INCOMPLETE: nothing could be compared" in str(result[1, 0])


def _killed(folder: Path, entries: dict[str, dict[str, object]]) -> Path:
    """A rank's folder as a killed process leaves it: a journal alone."""
    folder.mkdir(parents=True)
    envelope = encode_envelope(Envelope("statistics", "mix", "mindspore", None))
    journal = JournalWriter(Folder(folder), ENVELOPE, envelope)
    for name, body in entries.items():
        fields = [(key, f'  "{key}": {json.dumps(value)}'.encode()) for key, value in body.items()]
        journal.append(ENTRY, encode_entry(name, fields, None, None))
    journal.close()
    return folder
