"""The journal of a pre-check: what was judged is there, whatever ended the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from msprobe_ms.accuracy.execution.journal import Journal, run_key, unfinished_run
from msprobe_ms.accuracy.judging.model import ApiResult, Status
from msprobe_ms.support.translation import speaking, tr, translated


def test_results_are_read_back_and_a_cut_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "accuracy_checking_1.journal"
    with Journal(path, "key") as journal:
        for number in range(3):
            journal.add(f"Mint.sub.{number}", {"forward": "pass", "text": "é\n"})
    whole = path.read_bytes()
    for size in range(len(whole) - 40, len(whole)):
        path.write_bytes(whole[:size])
        with Journal(path, "key") as journal:
            assert list(journal.done) == ["Mint.sub.0", "Mint.sub.1"]
            journal.add("Mint.sub.2", {"forward": "error"})
        with Journal(path, "key") as journal:
            assert journal.done["Mint.sub.2"] == {"forward": "error"}


def test_reasons_are_told_in_the_language_of_the_run_that_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "accuracy_checking_1.journal"
    reason = tr("same arguments as {first}", first="Mint.sub.0")
    with Journal(path, "key") as journal:
        journal.add("Mint.sub.1", ApiResult("Mint.sub.1", Status.SKIP, None, reason).to_json())
    with Journal(path, "key") as journal, speaking("zh"):
        found = ApiResult.from_json(journal.done["Mint.sub.1"]).message
        assert found == reason
        assert translated(found) == translated(reason) != reason


def test_a_journal_of_another_run_is_not_gone_on_with(tmp_path: Path) -> None:
    with Journal(tmp_path / "accuracy_checking_1.journal", "one") as journal:
        journal.add("Mint.sub.0", {})
    assert unfinished_run(tmp_path, "other") is None
    found = unfinished_run(tmp_path, "one")
    assert found is not None
    with found:
        assert list(found.done) == ["Mint.sub.0"]
        assert unfinished_run(tmp_path, "one") is None, "another process is at work on it"
        found.remove()
    assert unfinished_run(tmp_path, "one") is None


@pytest.mark.parametrize("content", [b"", b"x", b"{}\n", b'{"key": 1}\n', b"\xff\n", b"[" * 100_000 + b"\n"])
def test_damaged_journals_begin_anew(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "accuracy_checking_1.journal"
    path.write_bytes(content)
    with Journal(path, "key") as journal:
        assert journal.done == {}
        journal.add("Mint.sub.0", {})
    with Journal(path, "key") as journal:
        assert list(journal.done) == ["Mint.sub.0"]


def test_the_key_tells_dumps_and_options_apart(tmp_path: Path) -> None:
    file = tmp_path / "dump.json"
    file.write_text("{}")
    key = run_key(file, {"seed": 1})
    assert key == run_key(file, {"seed": 1}) != run_key(file, {"seed": 2})
    file.write_text("{ }")
    assert key != run_key(file, {"seed": 1})
