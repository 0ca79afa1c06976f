"""Tables that grow while a training goes on."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from msprobe_ms.accuracy.execution.journal import Journal
from msprobe_ms.accuracy.judging.model import ApiResult, Status
from msprobe_ms.accuracy.online.growing_table import GrowingTable
from msprobe_ms.remote.spool import Progress

PROGRESS = Progress(100, 3, {"Mint.sub": (12, 3), "Functional.rand": (2, 0), "Mint.sin": (3, 3)},
                    {"Functional.rand": "random output"})  # fmt: skip


def rows(folder: Path) -> list[list[str]]:
    (table,) = folder.glob("accuracy_checking_result_*.csv")
    with table.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))[1:]


def table(folder: Path, journal: Journal) -> GrowingTable:
    return GrowingTable(folder, "20260101000000", journal, "own")


def test_what_was_not_sampled_has_rows_with_its_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Journal(tmp_path / "x.journal", "key") as journal:
        growing = table(tmp_path, journal)
        growing.add(ApiResult("step0.Mint.sub.0", Status.PASS, Status.PASS))
        growing.write_when_due(PROGRESS)
        first = rows(tmp_path)
        growing.add(ApiResult("step7.Mint.sub.1", Status.ERROR, None))
        growing.write_when_due(PROGRESS)
        assert rows(tmp_path) == first, "they are written every few seconds, not for every call"
        growing.complete(PROGRESS, killed=False)
    assert rows(tmp_path) == [
        ["step0.Mint.sub.0", "pass", "pass", ""],
        ["step7.Mint.sub.1", "error", "", ""],
        ["Functional.rand", "SKIP", "", "random output: 2 of its 2 calls in 3 of 100 steps"],
        ["Mint.sub", "SKIP", "", "not sampled: 9 of its 12 calls in 3 of 100 steps"],
    ]
    assert list(tmp_path.glob("accuracy_checking_report_*.html"))
    said = capsys.readouterr().err
    assert said.startswith(
        "ERROR: calls within the training: 2 API calls judged (2 forward, 1 backward): 2 pass, 0 warning, 1 error; "
        "0 entries not checked"
    )
    assert "sampled: 6 of 17 calls of 3 APIs in 3 of 100 steps" in said


def test_another_process_goes_on_and_does_not_try_again_what_ended_the_first(tmp_path: Path) -> None:
    with Journal(tmp_path / "x.journal", "key") as journal:
        growing = table(tmp_path, journal)
        for number in range(2):
            name = f"step0.Mint.sub.{number}"
            growing.begin(ApiResult(name, Status.SKIP, None, "lost with worker"))
            if number == 0:
                growing.add(ApiResult(name, Status.PASS, None))
    with Journal(tmp_path / "x.journal", "key") as journal:
        found = table(tmp_path, journal).results
    assert [(result.name, result.forward) for result in found.values()] == [
        ("step0.Mint.sub.0", Status.PASS), ("step0.Mint.sub.1", Status.SKIP),
    ]  # fmt: skip


def test_who_does_not_speak_tells_of_errors_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Journal(tmp_path / "x.journal", "key") as journal:
        growing = table(tmp_path, journal)
        growing.add(ApiResult("step0.Mint.sub.0", Status.PASS, None))
        growing.complete(PROGRESS, killed=True, speaks=False)
        assert capsys.readouterr().err == ""
        growing.add(ApiResult("step1.Mint.sub.0", Status.ERROR, None))
        growing.complete(PROGRESS, killed=True, speaks=False)
        assert "at least 100 steps" in capsys.readouterr().err
