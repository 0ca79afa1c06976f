"""The completion script: bash itself completes with it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from msprobe_ms.cli.main import main


@pytest.mark.processes
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_commands_and_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "msprobe.bash"
    script.write_text(capsys.readouterr().out)
    ask = """
        source "$1"; shift
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9
        "$(complete -p msprobe | sed 's/.* -F \\([^ ]*\\).*/\\1/')"; printf '%s\\n' "${COMPREPLY[@]}"
    """

    def completed(*words: str) -> set[str]:
        done = subprocess.run(
            ["bash", "-c", ask, "bash", script, *words], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        return {word.strip() for word in done.stdout.split("\n")}

    assert {"compare", "compare_weights"} <= completed("msprobe", "comp")
    assert {"--layer_mapping", "--rank"} <= completed("msprobe", "compare", "--")


def test_without_shtab_its_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    assert 'pip install "msprobe-ms[completion]"' in capsys.readouterr().err
