"""What continuous integration runs, and lanes of their own beside it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from repository import ROOT


def test_continuous_integration_runs_make_test() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text(encoding="utf-8").splitlines()[-1] == "make test"


def test_the_browser_lane_fails_where_there_is_no_browser(tmp_path: Path) -> None:
    (tmp_path / "bash").symlink_to(shutil.which("bash") or "")
    (tmp_path / "dirname").symlink_to(shutil.which("dirname") or "")
    done = subprocess.run(
        [tmp_path / "bash", ROOT / ".ci" / "browser"], env={"PATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "apt-get install chromium nodejs npm" in done.stderr
    assert "MSPROBE_BROWSER=required make browser" in (ROOT / ".ci" / "browser").read_text("utf-8")


def test_installs_are_tested_in_a_lane_of_their_own_and_before_a_release() -> None:
    assert (ROOT / ".ci" / "installs").read_text("utf-8").splitlines()[-1] == "make installs"
    assert os.access(ROOT / ".ci" / "installs", os.X_OK)
    assert "\nrelease-check: installs " in (ROOT / "Makefile").read_text("utf-8")


def test_whole_tables_are_tested_in_a_lane_of_their_own() -> None:
    assert (ROOT / ".ci" / "thorough").read_text("utf-8").splitlines()[-1] == "make thorough"
    assert os.access(ROOT / ".ci" / "thorough", os.X_OK)
