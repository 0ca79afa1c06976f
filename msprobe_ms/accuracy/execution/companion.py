"""A process with one framework, as the one that asks it sees it: begun when needed, ended when it hangs, begun anew."""

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
from msprobe_ms.dump.dialects import MINDTORCH
from msprobe_ms.support.files import PACKAGE_FOLDER
from msprobe_ms.support.text import printable

#: Seconds that importing a framework may take.
_START = 300.0
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
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._failed: Raised | None = None
        self._waiting = False
        #: What frameworks write about themselves; read where they do not start.
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (it lasts as long as this)

    def ask(self, request: Request | Describe) -> None:
        """Send a request; begin the process where there is none.

        :raises CannotStart: the framework cannot be imported
        """
        if self._waiting:  # an answer that nobody took
            self.close()
        self._failed, self._waiting = None, True
        if self._connection is None:
            self._start()
        try:
            self._connected().send(request)
        except OSError:  # it ended since it was last asked
            self.close()
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
        self.close()
        return Raised(f"timed out after {seconds:g} s")

    def renew(self) -> None:
        """Have the next request run in a fresh process."""
        self.close()

    def close(self) -> None:
        """End the process, with all that it has begun."""
        connection, self._connection = self._connection, None
        process, self._process = self._process, None
        if connection is not None:
            connection.close()
        if process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def __del__(self) -> None:
        with suppress(Exception):  # at the end of the interpreter, even a module may be gone
            self.close()

    def _connected(self) -> Connection:
        if self._connection is None:
            raise CannotStart("nothing was asked")
        return self._connection

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs, self._startable(ours):
            command = [
                self._interpreter or sys.executable,
                "-m",
                "msprobe_ms.accuracy.execution.server",
                *self._arguments,
            ]
            command += [str(theirs.fileno()), *([self._references] if self._references else [])]
            self._process = subprocess.Popen(
                command,
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stderr=self._said,
                env=self._environment(),
                start_new_session=True,
            )
        self._connection = Connection(ours.detach())
        try:
            ready = self._connection.poll(_START) and self._connection.recv() == "ready"
        except (EOFError, OSError):
            ready = False
        if not ready:
            reason = self._ended().reason
            role, framework = self._arguments
            raise CannotStart(f"the {role} of {framework} does not start: {self._last_words() or reason}")

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
        process = self._process
        if process is None:
            return Raised("lost with worker")
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        code = process.returncode
        self.close()
        if code is None:
            return Raised("lost with worker")
        return Raised(f"crashed: signal {-code}" if code < 0 else f"crashed: exit {code}")
