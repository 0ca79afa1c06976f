"""The command ``msit`` gives way to msit's own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from msprobe_ms.cli.msit import main


def test_it_is_msprobe(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["msit", "llm", "dump", "--exec", "bash run.sh", "-tiling"])
    assert main() == 2
    assert "-tiling: tiling is of Ascend's kernels" in capsys.readouterr().err


def test_it_is_that_of_msit_where_both_are_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_msit.py").write_text("def run():\n    return 'theirs'\n")
    described = tmp_path / "msit-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: msit\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text("[console_scripts]\nmsit = their_msit:run\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["msit", "benchmark"])
    assert main() == "theirs"
