"""The tutorial does what it says: its cells run, one after the other, and print what the notebook holds."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tools.tutorial import NOTEBOOK, cells, printed

#: How far a value is off, and what to do about it, in words that may change.
_REASON = re.compile(r"^output\.0 deviates by .*$", re.MULTILINE)


def test_the_tutorial_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    stored = ["".join(text for output in cell["outputs"] for text in output["text"]) for cell in cells(notebook)]
    found = printed(notebook)
    message = "python tools/tutorial.py stores it anew"
    assert [_REASON.sub("why", text) for text in found] == [_REASON.sub("why", text) for text in stored], message
    assert _REASON.search("".join(found)), "it shows why"
    assert "/" not in "".join(stored), "no path of a machine"
    assert (tmp_path / "report.html").stat().st_size > 100_000
