"""An interrupt at any line leaves training as it was; debuggers that nobody holds are gone."""

from __future__ import annotations

from pathlib import Path

import pytest
from forked import run_forked

from torture.harness import environment, printed

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
    ("framework", "options"),
    [("pytorch", "--phase forward --every 99"), ("mindspore", "--phase stop --after-calls --every 99")],
)
def test_an_interrupt_leaves_training_as_it_was(framework: str, options: str, tmp_path: Path) -> None:
    command = ["-m", "torture.interrupts", "--error", "KeyboardInterrupt", "--occurrences", "1", *options.split()]
    imported = "torch" if framework == "pytorch" else framework
    run = run_forked(*command, "--one", framework, framework=imported, cwd=tmp_path, env=environment())
    assert run.returncode == 0, run.stderr[-2000:]
    outcomes = list(printed(run.stdout.splitlines()))
    assert outcomes and all(outcome.figures["tried"] for outcome in outcomes)
    assert [problem for outcome in outcomes for problem in outcome.problems] == []


def test_debuggers_are_gone_with_their_users_and_end_with_the_process(tmp_path: Path) -> None:
    run = run_forked("-c", DEBUGGERS, framework="torch", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 1000  # each has ten thousand
    dumps = list((tmp_path / "open").glob("step0/*/*"))
    assert {file.name for file in dumps} == {"dump.json", "stack.json", "construct.json"}


#: A time limit of the script's own, which ends each of its steps at another line of the package.
TIME_LIMITS = """
import os, signal, sys
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 2)
    def forward(self, x):
        return torch.relu(self.fc(x))

net, x = Net(), torch.ones(3, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

def limit(*_):
    raise TimeoutError("limit")

signal.signal(signal.SIGALRM, limit)

def lines(until=None):
    # Trains for a step; how many lines of the package ran.
    count = 0
    def trace(frame, event, argument):
        nonlocal count
        if f"{os.sep}msprobe_ms{os.sep}" not in frame.f_code.co_filename:
            return None
        if event == "line":
            count += 1
            if count == until:
                sys.settrace(None)
                signal.raise_signal(signal.SIGALRM)
        return trace
    sys.settrace(trace)
    try:
        net(x).sum().backward()
        optimizer.step()
    finally:
        sys.settrace(None)
    return count

lines()
tried = ended = 0
for line in range(1, lines(), 1501):
    try:
        tried += 1
        lines(line)
    except TimeoutError:
        ended += 1
print(f"{ended} of {tried} ended,", "still recording" if lines() > 5000 else "recording no more")
"""


def test_a_time_limit_of_a_script_that_is_not_edited_ends_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TIME_LIMITS)
    options = ["--level", "mix", "--dump_path", "dump"]
    run = run_forked("-m", "msprobe_ms", "run", *options, "train.py", framework="torch", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    ended, _, tried, *rest = run.stdout.split()
    assert ended == tried and int(tried) > 10
    assert rest == ["ended,", "still", "recording"]
