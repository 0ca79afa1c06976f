"""Commands of msprobe that are not here."""

from __future__ import annotations

import pytest

from msprobe_ms.cli.main import main


@pytest.mark.parametrize("name", ["data2db", "offline_dump", "install_deps"])
def test_they_say_so_and_what_there_is_instead(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--db", "out", "-f"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"msprobe: {name} is not supported: ") and error.count("\n") == 1
