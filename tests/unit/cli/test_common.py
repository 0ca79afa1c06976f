"""Colours on the command line: in a terminal that wants them, and nowhere else."""

from __future__ import annotations

import io
import os

import pytest

from msprobe_ms.cli.common import takes_colours


def test_a_terminal_takes_colours_unless_the_user_declines_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    leader, follower = os.openpty()
    with os.fdopen(leader, "rb"), os.fdopen(follower, "w") as terminal:
        assert takes_colours(terminal)
        monkeypatch.setenv("TERM", "dumb")
        assert not takes_colours(terminal)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("NO_COLOR", "1")
        assert not takes_colours(terminal)


def test_a_file_or_a_pipe_takes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert not takes_colours(io.StringIO())
