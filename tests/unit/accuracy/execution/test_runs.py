"""Runs of a pre-check: each has a time of its own, and one that was ended goes on where it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msprobe_ms.accuracy.execution.runs import opened_journal
from msprobe_ms.support.errors import UsageError


def test_a_run_that_was_ended_is_found_again_by_its_key(tmp_path: Path) -> None:
    with opened_journal(tmp_path, "one", None) as (journal, first):
        journal.add("Mint.sub.0", {"forward": "pass"})
    with opened_journal(tmp_path, "another", None) as (journal, second):
        assert not journal.done
    assert second != first
    with opened_journal(tmp_path, "one", None) as (journal, again):
        assert again == first
        assert journal.done == {"Mint.sub.0": {"forward": "pass"}}


def test_a_table_of_no_run_is_refused(tmp_path: Path) -> None:
    for name, said in (
        ("results.csv", "14 digits"),
        ("accuracy_checking_result_20260101000000.csv", "came to its end"),
    ):
        with pytest.raises(UsageError, match=said), opened_journal(tmp_path, "one", tmp_path / name):
            pass


def test_a_journal_of_another_dump_is_begun_anew(tmp_path: Path) -> None:
    with opened_journal(tmp_path, "one", None) as (journal, first):
        journal.add("Mint.sub.0", {})
    table = tmp_path / f"accuracy_checking_result_{first}.csv"
    with opened_journal(tmp_path, "another", table) as (journal, again):
        assert (again, journal.done) == (first, {})
    lines = (tmp_path / f"accuracy_checking_{first}.journal").read_text().splitlines()
    assert [json.loads(line)["key"] for line in lines] == ["another"]
