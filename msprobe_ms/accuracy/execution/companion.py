"""A process with one framework, as the one that asks it sees it: begun when needed, ended when it hangs, begun anew.

A nursery imports the framework, once for all of this process that need the same; those that are asked are its children.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from msprobe_ms.accuracy.execution.messages import REFERENCE, Answer, Describe, Raised, Request, Role
from msprobe_ms.accuracy.execution.nursery import Child, exit_status, fork
from msprobe_ms.accuracy.execution.processor_time import processor_seconds, waits_for_processor
from msprobe_ms.accuracy.execution.shared_nursery import SharedNursery, kill_group, shared_nursery
from msprobe_ms.dump.dialects import MINDTORCH
from msprobe_ms.support.files import PACKAGE_FOLDER
from msprobe_ms.support.translation import tr

#: Seconds that a process of it may take to begin.
_START = 300.0
#: Seconds in which a process that was killed, or closed its connection, has ended.
_END = 5.0
#: How often a process may take its time for an answer that a busy machine does not let run.
_PATIENCE = 20
#: Threads of one process: sums have the same order whatever the machine, and two processes share it.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

#: What tells a framework which devices there are.
_VISIBLE = ("ASCEND_RT_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")


class CannotStart(Exception):
    """The process ended before it was ready; the message is what it said."""


class Companion:
    """One role's process. ``ask`` and ``answer`` alternate; an answer that does not come costs the process, not us."""

    def __init__(self, role: Role, *, device: int | None = None, interpreter: str | None = None) -> None:
        """``interpreter``: a Python other than this one."""
        self._role = role
        self._interpreter = interpreter
        self._devices = {} if device is None else dict.fromkeys(_VISIBLE, str(device))
        self._nursery: SharedNursery | None = None
        self._control: socket.socket | None = None
        self._child: Child | None = None
        self._failed: Raised | None = None
        self._waiting = False

    def begin(self) -> None:
        """Begin to import the framework, and do not wait for it. Where it cannot be begun, ``ask`` says why."""
        if self._nursery is None:
            with suppress(CannotStart):
                self._nursery = self._shared_nursery()

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
            if self._comes(connection, seconds):
                received: Any = connection.recv()
                return received
        except (EOFError, OSError):
            return self._ended()
        self.renew()
        return Raised(tr("timed out after {seconds:g} s", seconds=seconds))

    def _comes(self, connection: Connection, seconds: float) -> bool:
        """Wait for an answer; longer where a busy machine does not let the process run that is to give it."""
        process = self._child.id if self._child is not None else 0
        begun = processor_seconds(process)
        for _ in range(_PATIENCE):
            if connection.poll(seconds):
                return True
            if not waits_for_processor(process) or processor_seconds(process) - begun > seconds / 2:
                return False
        return False

    def renew(self) -> None:
        """End the process, with all that it has begun; the next request runs in a fresh one."""
        child, self._child = self._child, None
        if child is None or self._control is None:
            return
        child.connection.close()
        kill_group(child.id)
        if exit_status(self._control, _END) is None:
            self.close()

    def close(self) -> None:
        """End the process; its nursery ends with the last that asks it."""
        child, self._child = self._child, None
        control, self._control = self._control, None
        self._nursery = None
        if child is not None:
            child.connection.close()
            kill_group(child.id)
        if control is not None:
            control.close()

    def __del__(self) -> None:
        with suppress(Exception):  # at the end of the interpreter, even a module may be gone
            self.close()

    def _connected(self) -> Connection:
        if self._child is None:
            raise CannotStart(tr("nothing was asked"))
        return self._child.connection

    def _start(self) -> None:
        child = None if self._control is None else self._forked()
        if child is None:  # there is no nursery yet, or it ended
            begun = self._nursery  # which may still import, and would end if nobody held it
            self.close()
            self._nursery = begun if begun is not None and begun.lives else self._shared_nursery()
            self._control = self._nursery.control()
            child = self._forked()
        self._child = child
        if child is None or not _says_ready(child.connection):
            nursery, reason = self._nursery, self._ended().reason
            self.close()
            raise CannotStart(
                tr(
                    "the {role} of {framework} does not start: {last_words}",
                    role=self._role.name,
                    framework=self._role.framework,
                    last_words=(nursery and nursery.last_words()) or reason,
                )
            )

    def _shared_nursery(self) -> SharedNursery:
        interpreter = self._interpreter or sys.executable
        try:
            return shared_nursery(interpreter, self._role.imports, self._environment())
        except OSError as error:
            raise CannotStart(f"{interpreter}: {error.strerror or error}") from error

    def _forked(self) -> Child | None:
        with suppress(OSError):
            return fork(self._control, json.dumps(self._role).encode(), _START) if self._control is not None else None
        return None

    def _environment(self) -> dict[str, str]:
        found = {**_ONE_THREAD, **os.environ, **self._devices}
        role = self._role
        if self._interpreter is not None or (role.name == REFERENCE and role.framework == MINDTORCH.name):
            # What makes MSAdapter importable as torch, or belongs to this interpreter, is not for that process.
            found["PYTHONPATH"] = os.path.dirname(PACKAGE_FOLDER.rstrip(os.sep))
        return found

    def _ended(self) -> Raised:
        """Why the process is gone."""
        code = None if self._control is None else exit_status(self._control, _END)
        if code is None and self._nursery is not None:  # which ended with it, or before it had one
            code = self._nursery.end(_END)
            self.close()
        elif self._child is not None:
            child, self._child = self._child, None
            child.connection.close()
            kill_group(child.id)
        if code is None:
            return Raised(tr("lost with worker"))
        return Raised(
            tr("crashed: signal {number}", number=-code) if code < 0 else tr("crashed: exit {code}", code=code)
        )


def _says_ready(connection: Connection) -> bool:
    try:
        return connection.poll(_START) and connection.recv() == "ready"
    except (EOFError, OSError):
        return False
