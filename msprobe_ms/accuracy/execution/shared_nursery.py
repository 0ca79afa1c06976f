"""A nursery as those that ask it see it: one for all of this process that need the same framework, begun alike."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from threading import Lock
from weakref import WeakValueDictionary

from msprobe_ms.accuracy.execution.nursery import another, control_sockets, is_ready
from msprobe_ms.support.text import printable

#: Seconds that importing a framework may take.
_START = 300.0

_Key = tuple[str, str, frozenset[tuple[str, str]]]
#: Those that somebody asks.
_nurseries: WeakValueDictionary[_Key, SharedNursery] = WeakValueDictionary()
_begins = Lock()


def shared_nursery(interpreter: str, framework: str, environment: Mapping[str, str]) -> SharedNursery:
    """Return the nursery of a Python that imports a framework, begun where there is none.

    :raises OSError: the Python cannot be run
    """
    key = interpreter, framework, frozenset(environment.items())
    with _begins:
        found = _nurseries.get(key)
        if found is None or not found.lives:
            found = _nurseries[key] = SharedNursery(interpreter, framework, environment)
        return found


class SharedNursery:
    """A process that forks others. It ends when nobody holds this object, or with this process.

    Linux ends it with the thread that began it, so none that ends before those who ask may begin it.
    """

    def __init__(self, interpreter: str, framework: str, environment: Mapping[str, str]) -> None:
        #: What frameworks write about themselves; read where they do not start.
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (it lasts as long as this)
        self._first, theirs = control_sockets()
        self._imports, self._is_ready = Lock(), False
        with theirs:
            command = [interpreter, "-m", "msprobe_ms.accuracy.execution.server", framework, str(theirs.fileno())]
            self._process = subprocess.Popen(
                command, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, stderr=self._said, env=environment,
                start_new_session=True,
            )  # fmt: skip

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def control(self) -> socket.socket | None:
        """Return a control socket of its own for who asks, once all is imported; None where it cannot be."""
        with self._imports:
            self._is_ready = self._is_ready or is_ready(self._first, _START)
            if not self._is_ready:
                return None
            with suppress(OSError):
                control = another(self._first)
                if is_ready(control, _START):
                    return control
                control.close()
        return None

    def last_words(self) -> str:
        """Return the last line that the process, or one that it forked, has written."""
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - 4000))
        lines = self._said.read().decode("utf-8", "replace").splitlines()
        return printable(next(filter(None, map(str.strip, reversed(lines))), ""))

    def end(self, seconds: float) -> int | None:
        """Wait for it to end by itself, and return its exit status; None where it does not, and is killed."""
        code = None
        with suppress(subprocess.TimeoutExpired):
            code = self._process.wait(seconds)
        kill_group(self._process.pid)
        self._process.wait()
        return code

    def __del__(self) -> None:
        with suppress(Exception):  # at the end of the interpreter, even a module may be gone
            self._first.close()
            kill_group(self._process.pid)
            self._process.wait()


def kill_group(leader: int) -> None:
    """End all processes of a group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
