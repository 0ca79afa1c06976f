"""An interrupt at any line leaves training as it was; debuggers that nobody holds are gone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from torture.harness import environment

DEBUGGERS = """
import gc, sys
import torch
from msprobe_ms.pytorch import PrecisionDebugger

net, x = torch.nn.Linear(4, 2), torch.randn(3, 4)

def record(number):
    debugger = PrecisionDebugger(dump_path=f"dump{number}", level="mix")
    debugger.start(net)
    net(x).sum().backward()
    debugger.stop()
    debugger.step()

def objects(numbers):
    for number in numbers:
        record(number)
    gc.collect()
    return len(gc.get_objects())

before = objects(range(5))
print(objects(range(5, 45)) - before)
open_one = PrecisionDebugger(dump_path="open", level="mix")
open_one.start(net)
net(x)
"""


@pytest.mark.parametrize(
    "options", ["pytorch --phase forward --every 99", "mindspore --phase stop --after-calls --every 99"]
)
def test_an_interrupt_leaves_training_as_it_was(options: str) -> None:
    command = [sys.executable, "-m", "torture.interrupts", "--error", "KeyboardInterrupt", "--occurrences", "1"]
    run = subprocess.run(
        [*command, "--framework", *options.split()], env=environment(), capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr[-2000:]
    assert "0 of them with problems" in run.stdout


def test_debuggers_are_gone_with_their_users_and_end_with_the_process(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", DEBUGGERS], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
    )
    assert int(run.stdout) < 1000  # each has ten thousand
    dumps = list((tmp_path / "open").glob("step0/*/*"))
    assert {file.name for file in dumps} == {"dump.json", "stack.json", "construct.json"}
