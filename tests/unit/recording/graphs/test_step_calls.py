"""What a source says of steps before any of it has run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from msprobe_ms.recording.graphs.step_calls import calls_step

LOOP = """
debugger = make()
for batch in data:
    debugger.start(net)  # here
    debugger.stop()
    {0}.step()
"""
FUNCTIONS = """
def train():
    self.debugger.start(  # here
        net)
    {0}.step()

def other():
    debugger.step()
"""
CLASS = """
class Trainer:
    def begin(self):
        self.debugger.start(net)  # here

    def end(self):
        {0}.step()
"""


def asked(tmp_path: Path, text: str) -> bool:
    path = tmp_path / "script.py"
    path.write_text(text)
    (line,) = (number for number, each in enumerate(text.splitlines(), 1) if "# here" in each)
    return calls_step(str(path), line, "PrecisionDebugger")


@pytest.mark.parametrize("text", [LOOP, FUNCTIONS, CLASS])
@pytest.mark.parametrize(
    ("stepped", "expected"),
    [("debugger", True), ("self.debugger", True), ("PrecisionDebugger", True), ("scheduler", False), ("f()", False)],
)
def test_what_is_stepped(tmp_path: Path, text: str, stepped: str, expected: bool) -> None:
    assert asked(tmp_path, text.format(stepped)) == expected


def test_what_is_no_source(tmp_path: Path) -> None:
    assert not asked(tmp_path, LOOP.format("debugger") + "\n)")
    assert not calls_step("<stdin>", 1, "PrecisionDebugger")
    os.mkfifo(tmp_path / "pipe")
    assert not calls_step(str(tmp_path / "pipe"), 1, "PrecisionDebugger")
    (tmp_path / "nested").write_text("(" * 100_000)
    assert not calls_step(str(tmp_path / "nested"), 1, "PrecisionDebugger")
