"""A process with one framework, as the one that asks it sees it: begun when needed, ended when it hangs, begun anew.

A nursery imports the framework, once; the processes that are asked are its children.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

from msprobe_ms.accuracy.execution.messages import REFERENCE, Answer, Describe, Raised, Request
from msprobe_ms.accuracy.execution.nursery import Child, exit_status, fork, is_ready
from msprobe_ms.dump.dialects import MINDTORCH
from msprobe_ms.support.files import PACKAGE_FOLDER
from msprobe_ms.support.text import printable

#: Seconds that importing a framework may take.
_START = 300.0
#: Seconds in which a process that was killed, or closed its connection, has ended.
_END = 5.0
#: Threads of one process: sums have the same order whatever the machine, and two processes share it.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

#: What tells a framework which devices there are.
_VISIBLE = ("ASCEND_RT_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")


class CannotStart(Exception):
    """The process ended before it was ready; the message is what it said."""


class Companion:
    """One role's process. ``ask`` and ``answer`` alternate; an answer that does not come costs the process, not us."""

    def __init__(
        self,
        role: str,
        framework: str,
        *,
        references: str | None = None,
        device: int | None = None,
        interpreter: str | None = None,
    ) -> None:
        """``references`` is a file of the user's; ``interpreter`` a Python other than this one."""
        self._arguments = (role, framework)
        self._references = references
        self._interpreter = interpreter
        self._devices = {} if device is None else dict.fromkeys(_VISIBLE, str(device))
        self._nursery: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._child: Child | None = None
        self._failed: Raised | None = None
        self._waiting = False
        #: What frameworks write about themselves; read where they do not start.
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (it lasts as long as this)

    def ask(self, request: Request | Describe) -> None:
        """Send a request; begin the process where there is none.

        :raises CannotStart: the framework cannot be imported
        """
        if self._waiting:  # an answer that nobody took
            self.renew()
        self._failed, self._waiting = None, True
        if self._child is None:
            self._start()
        try:
            self._connected().send(request)
        except OSError:  # it ended since it was last asked
            self.renew()
            self._start()
            try:
                self._connected().send(request)
            except OSError:
                self._failed = self._ended()

    def answer(self, seconds: float) -> Answer:
        """Wait for the answer; where the process dies or takes longer, say so and begin another for what comes next."""
        self._waiting = False
        if self._failed is not None:
            return self._failed
        connection = self._connected()
        try:
            if connection.poll(seconds):
                received: Any = connection.recv()
                return received
        except (EOFError, OSError):
            return self._ended()
        self.renew()
        return Raised(f"timed out after {seconds:g} s")

    def renew(self) -> None:
        """End the process, with all that it has begun; the next request runs in a fresh one."""
        child, self._child = self._child, None
        if child is None or self._control is None:
            return
        child.connection.close()
        _kill(child.id)
        if exit_status(self._control, _END) is None:
            self.close()

    def close(self) -> None:
        """End the process and its nursery."""
        child, self._child = self._child, None
        control, self._control = self._control, None
        nursery, self._nursery = self._nursery, None
        if child is not None:
            child.connection.close()
            _kill(child.id)
        if control is not None:
            control.close()
        if nursery is not None:
            _kill(nursery.pid)
            nursery.wait()

    def __del__(self) -> None:
        with suppress(Exception):  # at the end of the interpreter, even a module may be gone
            self.close()

    def _connected(self) -> Connection:
        if self._child is None:
            raise CannotStart("nothing was asked")
        return self._child.connection

    def _start(self) -> None:
        child = None if self._control is None else self._forked()
        if child is None:  # there is no nursery yet, or it ended
            self.close()
            self._begin_nursery()
            child = self._forked()
        self._child = child
        if child is None or not _says_ready(child.connection):
            reason = self._ended().reason
            self.close()
            role, framework = self._arguments
            raise CannotStart(f"the {role} of {framework} does not start: {self._last_words() or reason}")

    def _begin_nursery(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs, self._startable(ours):
            module = "msprobe_ms.accuracy.execution.server"
            command = [self._interpreter or sys.executable, "-m", module, *self._arguments, str(theirs.fileno())]
            self._nursery = subprocess.Popen(
                [*command, *([self._references] if self._references else [])],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stderr=self._said,
                env=self._environment(),
                start_new_session=True,
            )
        if is_ready(ours, _START):
            self._control = ours
        else:
            ours.close()

    def _forked(self) -> Child | None:
        with suppress(OSError):
            return fork(self._control, _START) if self._control is not None else None
        return None

    @contextmanager
    def _startable(self, ours: socket.socket) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            ours.close()
            raise CannotStart(f"{self._interpreter or sys.executable}: {error.strerror or error}") from error

    def _environment(self) -> dict[str, str]:
        found = {**_ONE_THREAD, **os.environ, **self._devices}
        role, framework = self._arguments
        if self._interpreter is not None or (role == REFERENCE and framework == MINDTORCH.name):
            # What makes MSAdapter importable as torch, or belongs to this interpreter, is not for that process.
            found["PYTHONPATH"] = os.path.dirname(PACKAGE_FOLDER.rstrip(os.sep))
        return found

    def _last_words(self) -> str:
        """The last line that the process wrote."""
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - 4000))
        lines = self._said.read().decode("utf-8", "replace").splitlines()
        return printable(next(filter(None, map(str.strip, reversed(lines))), ""))

    def _ended(self) -> Raised:
        """Why the process is gone."""
        code = None if self._control is None else exit_status(self._control, _END)
        if code is None and self._nursery is not None:  # which ended with it, or before it had one
            with suppress(subprocess.TimeoutExpired):
                code = self._nursery.wait(_END)
            self.close()
        elif self._child is not None:
            child, self._child = self._child, None
            child.connection.close()
            _kill(child.id)
        if code is None:
            return Raised("lost with worker")
        return Raised(f"crashed: signal {-code}" if code < 0 else f"crashed: exit {code}")


def _says_ready(connection: Connection) -> bool:
    try:
        return connection.poll(_START) and connection.recv() == "ready"
    except (EOFError, OSError):
        return False


def _kill(leader: int) -> None:
    """End all processes of a group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
