"""Reports of runs that begin in one second do not overwrite each other."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from rank_dumps import write_run

from msprobe_ms.cli.main import main
from msprobe_ms.comparison.reporting.timestamp import claimed_timestamp


def test_two_at_once_have_two_moments(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with claimed_timestamp(out) as first, claimed_timestamp(out) as second, claimed_timestamp(out, "node_") as other:
        assert len({first, second}) == 2
        assert other <= second
    assert not out.exists()


def test_a_moment_that_a_report_bears_is_not_given_again(tmp_path: Path) -> None:
    with claimed_timestamp(tmp_path) as first:
        (tmp_path / f"compare_summary_{first}.json").touch()
    with claimed_timestamp(tmp_path) as second:
        assert second > first
    assert [path.name for path in tmp_path.iterdir()] == [f"compare_summary_{first}.json"]


def test_a_folder_that_cannot_be_made_is_left_to_those_who_write(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with claimed_timestamp(tmp_path / "file/out") as stamp:
        assert stamp[:8] == time.strftime("%Y%m%d")


def test_four_commands_at_once_write_four_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, out = write_run(tmp_path / "good", ranks=1), tmp_path / "out"
    command = ["compare", "-tp", str(good), "-gp", str(good), "-o", str(out), "--csv"]
    threads = [threading.Thread(target=main, args=(command,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(out.glob("compare_result_*.csv"))) == len(list(out.glob("compare_summary_*.json"))) == 4
    assert not list(out.glob(".*"))
