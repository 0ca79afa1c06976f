"""The demonstration names files as they are called from the current folder."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_paths_below_the_current_folder_are_told_from_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = ast.parse((ROOT / "samples" / "demo.py").read_text())  # it imports MindSpore
    (function,) = (each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == "brief")
    names: dict[str, object] = {"os": os, "Path": Path}
    exec(compile(ast.Module([function], []), "demo.py", "exec"), names)
    monkeypatch.chdir(tmp_path)
    brief = names["brief"]
    assert callable(brief)
    assert brief(tmp_path / "out" / "page.html") == os.path.join("out", "page.html")
    assert brief(ROOT / "samples") == str(ROOT / "samples")
