"""Work beside a process is done once and whole, whatever becomes of the child that does it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import interruptible

from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.forked import beside


class Work:
    """Notes the processes in which it is done, and ends with ``ends`` in all but this one."""

    def __init__(self, notes: Path, ends: str = "") -> None:
        self._notes, self._ends, self._mine = notes, ends, os.getpid()

    def __call__(self) -> None:
        with self._notes.open("a") as notes:
            notes.write(f"{os.getpid()}\n")
        if os.getpid() != self._mine and self._ends == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if os.getpid() != self._mine and self._ends == "interrupted":
            raise KeyboardInterrupt
        if self._ends == "wrong":
            raise UsageError("no such folder")

    @property
    def processes(self) -> list[int]:
        return [int(number) for number in self._notes.read_text().split()] if self._notes.exists() else []

    @property
    def done_by(self) -> list[str]:
        return ["here" if number == self._mine else "child" for number in self.processes]


@pytest.mark.processes
def test_a_child_does_it_while_the_body_runs(tmp_path: Path) -> None:
    work, first = Work(tmp_path / "notes"), tmp_path / "first"
    with beside(work, forks=True):
        first.write_text("")
    assert (work.done_by, first.exists()) == (["child"], True)


def test_without_forks_it_is_done_before_the_body(tmp_path: Path) -> None:
    work = Work(tmp_path / "notes")
    with beside(work, forks=False):
        assert work.done_by == ["here"]
    assert work.done_by == ["here"]


@pytest.mark.processes
@pytest.mark.parametrize("ends", ["killed", "interrupted"])
def test_what_a_child_did_not_end_is_done_here(tmp_path: Path, ends: str) -> None:
    work = Work(tmp_path / "notes", ends)
    with beside(work, forks=True):
        pass
    assert work.done_by == ["child", "here"]


@pytest.mark.processes
def test_what_the_work_raises_is_raised_here(tmp_path: Path) -> None:
    work = Work(tmp_path / "notes", "wrong")
    with pytest.raises(UsageError, match="no such folder"), beside(work, forks=True):
        pass
    assert work.done_by == ["child", "here"]


@pytest.mark.processes
def test_what_the_body_raises_is_raised_once_the_child_has_ended(tmp_path: Path) -> None:
    work = Work(tmp_path / "notes")
    with pytest.raises(ValueError, match="body"), beside(work, forks=True):
        raise ValueError("body")
    assert work.done_by == ["child"]
    with pytest.raises(ChildProcessError):  # it is not left behind
        os.waitpid(work.processes[0], os.WNOHANG)


@pytest.mark.processes
def test_where_children_are_not_waited_for_it_is_done_again(tmp_path: Path) -> None:
    work, before = Work(tmp_path / "notes"), signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with beside(work, forks=True):
            pass
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert work.done_by == ["child", "here"]


def test_where_no_child_can_be_made_it_is_done_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError("too many processes")  # which no process of root's is told

    monkeypatch.setattr(os, "fork", refuse)
    work = Work(tmp_path / "notes")
    with beside(work, forks=True):
        assert work.done_by == []
    assert work.done_by == ["here"]


ENDS = """
import os, signal, sys, time
from pathlib import Path
from msprobe_ms.support.forked import beside

def work():
    Path(sys.argv[1]).touch()
    time.sleep(0.3)
    Path(sys.argv[2]).touch()

with beside(work, forks=True):
    while not Path(sys.argv[1]).exists():
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.processes
def test_a_child_ends_with_the_process_that_it_works_beside(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", ENDS, tmp_path / "begun", tmp_path / "done"], check=False)
    time.sleep(0.6)
    assert [each.name for each in tmp_path.iterdir()] == ["begun"]


INTERRUPTED = """
import os, signal, sys, time
from pathlib import Path
from msprobe_ms.support.files import replacing
from msprobe_ms.support.forked import beside

def work():
    with replacing(Path(sys.argv[1], "table")) as file:
        Path(sys.argv[1], "begun").touch()
        time.sleep(60)

with beside(work, forks=True):
    while not Path(sys.argv[1], "begun").exists():
        time.sleep(0.01)
    if sys.argv[2] == "body":
        os.kill(os.getpid(), signal.SIGINT)
    elif sys.argv[2] == "group":
        os.killpg(0, signal.SIGINT)
    else:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        signal.signal(signal.SIGALRM, signal.default_int_handler)
"""


@pytest.mark.processes
@pytest.mark.parametrize("where", ["body", "group", "wait"])
def test_an_interrupted_child_takes_back_what_it_had_begun(tmp_path: Path, where: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, tmp_path, where],
        capture_output=True, timeout=30, start_new_session=True, preexec_fn=interruptible,
    )  # fmt: skip
    assert b"KeyboardInterrupt" in ended.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["begun"]
