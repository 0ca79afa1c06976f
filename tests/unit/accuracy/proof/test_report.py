"""A proof as text and as a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msprobe_ms.accuracy.proof.report import proof_lines, write_proof
from msprobe_ms.accuracy.proof.trial import Trial
from msprobe_ms.accuracy.proof.verdict import Finding, Proof
from msprobe_ms.support.errors import UsageError

PROOF = Proof("Mint.sub.0.forward", "Torch.sub.0.forward", Finding.SETTING, "so it is",
              [Trial("run", True, 0.5, 0.1), Trial("again", None, note="no kernel")], ["a note"])  # fmt: skip


def test_the_sentence_comes_first_and_each_experiment_has_a_line() -> None:
    lines = list(proof_lines(PROOF))
    assert lines[:4] == ["WRONG: so it is", "  Mint.sub.0.forward", "    golden: Torch.sub.0.forward", "  a note"]
    assert [line.split() for line in lines[5:]] == [["yes", "0.5", "0.1", "run"], [*"---", "again:", "no", "kernel"]]


def test_a_file_is_written_and_never_over_another(tmp_path: Path) -> None:
    files = {write_proof(PROOF, tmp_path) for _ in range(2)}
    assert len(files) == 2
    assert all(json.loads(file.read_text())["sentence"] == "so it is" for file in files)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError):
        write_proof(PROOF, tmp_path / "file" / "inside")
