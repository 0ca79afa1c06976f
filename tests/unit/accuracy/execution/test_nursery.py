"""Processes forked from one that has imported what they need."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from repository import PYTHONPATH

from msprobe_ms.accuracy.execution.nursery import another, control_sockets, exit_status, fork, is_ready

NURSERY = """
import os, socket, sys
from msprobe_ms.accuracy.execution.nursery import keep

state = []

def serve(asked, connection):
    state.append(asked.decode())
    while True:
        try:
            state.append(connection.recv())
        except EOFError:
            return
        if state[-1] == "exit":
            sys.exit(3)
        if state[-1] == "raise":
            raise ValueError("told on stderr")
        connection.send((os.getpid(), list(state)))

keep(socket.socket(fileno=int(sys.argv[1])), serve)
"""


@pytest.fixture
def control() -> Iterator[socket.socket]:
    ours, theirs = control_sockets()
    with ours, theirs:
        process = subprocess.Popen(
            [sys.executable, "-c", NURSERY, str(theirs.fileno())], pass_fds=(theirs.fileno(),), stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": PYTHONPATH},
        )  # fmt: skip
        theirs.close()
        yield ours
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, "it ends when nobody can ask any more"
    assert said.count(b"Traceback") == said.count(b"ValueError: told on stderr") == 1


def score_of(process: int) -> int:
    """The larger, the sooner Linux ends a process where memory runs out."""
    return int(Path(f"/proc/{process}/oom_score_adj").read_text())


@pytest.mark.processes
def test_each_child_begins_anew_and_its_end_is_told(control: socket.socket) -> None:
    assert is_ready(control, 60)
    second = another(control)
    assert is_ready(second, 60)
    beside = fork(second, b"another role", 60)
    assert beside is not None
    for text, status in (("exit", 3), ("raise", 1), ("kill", -signal.SIGKILL), ("close", 0)):
        child = fork(control, b"a role", 60)
        assert child is not None
        child.connection.send("first")
        assert child.connection.recv() == (child.id, ["a role", "first"]), "nothing is left of the one before"
        assert os.getpgid(child.id) == child.id
        assert score_of(child.id) == 1000, "it goes first where memory runs out"
        if text == "kill":
            os.kill(child.id, signal.SIGKILL)
        elif text == "close":
            child.connection.close()
        else:
            child.connection.send(text)
        assert exit_status(control, 60) == status
        child.connection.close()
    beside.connection.send("still there")
    assert beside.connection.recv() == (beside.id, ["another role", "still there"])
    beside.connection.close()
    assert exit_status(second, 60) == 0
    second.close()


def test_one_that_ended_gives_no_child() -> None:
    ours, theirs = control_sockets()
    theirs.close()
    with ours:
        assert not is_ready(ours, 60)
        assert exit_status(ours, 60) is None
        with pytest.raises(OSError, match="Broken pipe"):
            fork(ours, b"a role", 60)
