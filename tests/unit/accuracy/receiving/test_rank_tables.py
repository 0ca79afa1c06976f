"""Rows of a rank: those of its trainings in order, and what did not come, by number."""

from __future__ import annotations

import csv
from pathlib import Path

from remote_calls import hello

from msprobe_ms.accuracy.execution.journal import Journal
from msprobe_ms.accuracy.judging.model import ApiResult, Judged, Status
from msprobe_ms.accuracy.receiving.judge import name_before
from msprobe_ms.accuracy.receiving.rank_tables import RankTables
from msprobe_ms.remote.inbox import Client
from msprobe_ms.remote.messages import Coverage, End, Ended


def client(name: str, order: int, numbers: tuple[int, ...], end: End | None = None, rank: int = 0) -> Client:
    found = Client(hello(name, rank), order)
    for number in numbers:
        found.received.add(number)
    found.end = end
    return found


def result(name: str, status: Status = Status.PASS) -> ApiResult:
    return ApiResult(name, status, None, "", (Judged(f"{name}.forward.output.0", "", "", (), {}, status),))


def test_rows_are_those_that_were_judged_and_what_did_not_come(tmp_path: Path) -> None:
    coverage = Coverage.model_validate({"steps": 9, "sampled": 2, "calls": {"Functional.relu": (5, 3)}})
    clients = {
        "a": client("a", 0, (1, 3, 6), End(count=8, coverage=coverage)),
        "b": client("b", 1, (1,), rank=1),
        "c": client("c", 2, (2,)),
    }
    assert [name_before(each, clients) for each in clients.values()] == ["", "", "training2."]
    with Journal(tmp_path / "x.journal", "key") as journal:
        tables = RankTables(tmp_path, "20260101000000", journal, "own")
        for name, number in (("c", 2), ("a", 6), ("b", 1), ("a", 1), ("a", 3)):
            tables.add(name, number, result(f"{name}{number}", Status.ERROR if number == 6 else Status.PASS))
        assert tables.ended(clients["a"]) == Ended(judged=3, wrong=1, missing=5)
    with Journal(tmp_path / "x.journal", "key") as journal:  # as after a kill
        tables = RankTables(tmp_path, "20260101000000", journal, "own")
        names = {rank: [row.name for row in tables.write(rank, "pytorch", clients, over=True).results]
                 for rank in (0, 1, 2)}  # fmt: skip
        growing = [row.name for row in tables.write(0, "pytorch", clients).results]
    assert names[0] == [
        "a1", "a3", "a6", "call 2", "calls 4-5", "calls 7-8", "Functional.relu",
        "c2", "training2.call 1", "training2.after call 2",
    ]  # fmt: skip
    assert growing == ["a1", "a3", "a6", "Functional.relu", "c2"]
    assert names[1] == ["b1", "after call 1"] and names[2] == ["rank2"]
    file = tmp_path / "accuracy_checking_result_20260101000000_rank2.csv"
    with file.open(encoding="utf-8-sig", newline="") as opened:
        (row,) = csv.DictReader(opened)
    assert row["Forward Test Success"] == "SKIP" and row["Message"] == "not received: no training of this rank came"
