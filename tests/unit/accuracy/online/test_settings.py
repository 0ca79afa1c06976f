"""Settings of a check within a training, on their way to the process that judges."""

from __future__ import annotations

from pathlib import Path

from msprobe_ms.accuracy.online.settings import Judging


def test_settings_survive_a_command_line() -> None:
    judging = Judging("/tmp/tables\n", 0.5, profile="v110", references="/a.yaml", save_errors=True, speaks=False)
    assert Judging.from_json(judging.to_json()) == judging
    assert judging.folder == Path("/tmp/tables\n")
