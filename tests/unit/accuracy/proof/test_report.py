"""A proof as text and as a file."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from compare_parts import compared
from report_page import Page
from repository import DATA

from msprobe_ms.accuracy.proof.question import Question
from msprobe_ms.accuracy.proof.report import keep, proof_lines, write_proof
from msprobe_ms.accuracy.proof.trial import Trial
from msprobe_ms.accuracy.proof.verdict import Finding, Proof
from msprobe_ms.comparison.run import Options
from msprobe_ms.support.errors import UsageError

PROOF = Proof("Mint.sub.0.forward", "Torch.sub.0.forward", Finding.SETTING, "so it is",
              [Trial("run", True, 0.5, 0.1), Trial("again", None, note="no kernel")], ["a note"])  # fmt: skip


def test_the_sentence_comes_first_and_each_experiment_has_a_line() -> None:
    lines = list(proof_lines(PROOF))
    assert lines[:4] == ["WRONG: so it is", "  Mint.sub.0.forward", "    golden: Torch.sub.0.forward", "  a note"]
    assert [line.split() for line in lines[5:]] == [["agrees", "0.5", "0.1", "run"], [*"---", "again:", "no", "kernel"]]


def test_the_first_words_say_where_the_error_is() -> None:
    said = {finding: next(proof_lines(replace(PROOF, finding=finding))).partition(":")[0] for finding in Finding}
    assert said[Finding.INPUT] == "NOT HERE" and said[Finding.UNDECIDED] == "UNDECIDED"
    assert said[Finding.GOLDEN] == said[Finding.RIGHT] == "RIGHT" and said[Finding.OPERATOR] == "WRONG"


def test_a_difference_that_is_tried_explains_or_does_not() -> None:
    tried = [Trial("norm", True, note="+1 %", explains=True), Trial("norm", False, note="+0 %", explains=True)]
    lines = list(proof_lines(replace(PROOF, trials=tried)))
    assert lines[-2].startswith("explains  ") and lines[-1].startswith("does not  ")


def test_a_file_is_written_and_never_over_another(tmp_path: Path) -> None:
    files = {write_proof(PROOF, tmp_path) for _ in range(2)}
    assert len(files) == 2
    assert all(json.loads(file.read_text())["sentence"] == "so it is" for file in files)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError):
        write_proof(PROOF, tmp_path / "file" / "inside")


def test_it_is_kept_beside_the_report_and_shown_in_its_page(tmp_path: Path) -> None:
    mapping = DATA / "mapping"
    sides = mapping / "encoder_mindspore_L0", mapping / "encoder_pytorch_L0"
    report = compared(*sides, tmp_path, Options(html=True)).files[-1]
    question = Question(*sides, "Mint.sub.0.backward", report=report)
    written, shown = keep(PROOF, question, None)
    (file,) = tmp_path.glob("proof_*.json")
    assert written == f"proof: {file}"
    content = json.loads(file.read_text())
    assert (content["report"], content["asked"]) == (report.name, "Mint.sub.0.backward")
    assert shown == f"shown in: {tmp_path / 'compare_report_now.html'}"
    (told,) = Page.of(tmp_path / "compare_report_now.html").index["proofs"]
    assert told == {
        "calls": ["Mint.sub.0.backward", "Mint.sub.0.forward"],
        "answer": "wrong",
        "sentence": "so it is",
        "details": ["a note", "agrees: run (0.5 ULP off, 0.1 times what is allowed)", "no result: again: no kernel"],
    }


def test_where_nobody_may_write_the_answer_stands_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    question = Question(tmp_path, None, "Mint.sub.0.forward", report=tmp_path / "file" / "compare_summary_1.json")
    with caplog.at_level(logging.WARNING):
        assert list(keep(PROOF, question, None)) == []
    assert "the report cannot be written" in caplog.text
    assert list(keep(PROOF, Question(tmp_path, None, "Mint.sub.0.forward"), None)) == []
