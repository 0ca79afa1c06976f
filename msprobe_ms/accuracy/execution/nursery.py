"""A process that has imported a framework and forks the ones that run its APIs: an import takes seconds, a fork none.

The nursery itself computes nothing, so each of its children begins as one that has just imported the framework. Over a
control socket comes a message for each child that is wanted, which says what for; back goes the child's id with one end
of a connection to it, and its exit status when it is over. One child of a control socket lives at a time. Who asks may
hand over another control socket, for another child beside its own.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple, NoReturn

from msprobe_ms.support.process import end_with_parent

#: What a nursery says over a control socket once it has imported everything.
READY = b"ready"

#: Sent with another control socket.
_ANOTHER = b"another"

_LONGEST_MESSAGE = 1 << 13

#: Is given what was asked, and the connection to who did.
Serve = Callable[[bytes, Connection], None]


class Child(NamedTuple):
    """A process that a nursery forked: the leader of a group of its own."""

    id: int
    connection: Connection


def control_sockets() -> tuple[socket.socket, socket.socket]:
    """Return both ends of a control socket; what is sent at once arrives at once."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def keep(control: socket.socket, serve: Serve) -> None:
    """Fork a child that runs ``serve`` for each message that comes, until nobody can ask any more."""
    _Nursery(control, serve).run()


class _Nursery:
    def __init__(self, control: socket.socket, serve: Serve) -> None:
        self._serve = serve
        self._asking = [control]
        #: Children that live → who asked for them.
        self._children: dict[int, socket.socket] = {}
        #: Has something to read when a child has ended.
        self._ended, self._wake = socket.socketpair()

    def run(self) -> None:
        gc.freeze()  # no child looks at what is imported, which would copy it
        self._wake.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._asking[0].sendall(READY)
        while self._asking:
            for ready in select.select([self._ended, *self._asking], [], [])[0]:
                if ready is self._ended:
                    self._ended.recv(_LONGEST_MESSAGE)
                    self._tell_who_ended()
                else:
                    self._take(ready)

    def _tell_who_ended(self) -> None:
        for child, control in list(self._children.items()):
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                del self._children[child]
                with suppress(OSError):  # nobody wants to know any more
                    control.sendall(str(os.waitstatus_to_exitcode(status)).encode())

    def _take(self, control: socket.socket) -> None:
        """Do what is asked over a control socket, or forget it where nobody holds its other end."""
        message, descriptors = b"", list[int]()
        with suppress(OSError):
            message, descriptors, _, _ = socket.recv_fds(control, _LONGEST_MESSAGE, 1)
        if descriptors:
            another = socket.socket(fileno=descriptors[0])
            self._asking.append(another)
            with suppress(OSError):  # its other end is closed by now, which the next look at it shows
                another.sendall(READY)
        elif message:
            self._fork(control, message)
        else:
            self._asking.remove(control)
            control.close()

    def _fork(self, control: socket.socket, message: bytes) -> None:
        ours, theirs = socket.socketpair()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads: libraries' own, which wait
            child = os.fork()
        if child == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for each in (ours, self._ended, self._wake, *self._asking):
                each.close()
            _be_child(Connection(theirs.detach()), partial(self._serve, message))
        self._children[child] = control
        theirs.close()
        with ours, suppress(OSError):  # who asked is gone; the child ends, as nobody holds the connection
            socket.send_fds(control, [str(child).encode()], [ours.fileno()])


def _be_child(connection: Connection, serve: Callable[[Connection], None]) -> NoReturn:
    status = 1
    try:
        os.setsid()
        end_with_parent()  # an API that hangs would outlive it
        _end_first()
        serve(connection)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _end_first() -> None:
    """Have Linux end this process where memory runs out, and no training beside it: a dump may ask for any."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def is_ready(control: socket.socket, seconds: float) -> bool:
    """Wait for a nursery to have imported everything; False where it ended or takes longer."""
    return _said(control, seconds) == READY


def another(control: socket.socket) -> socket.socket:
    """Return another control socket of the same nursery. Raises OSError where it ended."""
    ours, theirs = control_sockets()
    with theirs:
        socket.send_fds(control, [_ANOTHER], [theirs.fileno()])
    return ours


def fork(control: socket.socket, message: bytes, seconds: float) -> Child | None:
    """Ask a nursery for a child; None where it ended. Raises OSError where the connection is broken."""
    control.sendall(message)
    if not select.select([control], [], [], seconds)[0]:
        return None
    said, descriptors, _, _ = socket.recv_fds(control, _LONGEST_MESSAGE, 1)
    if not descriptors:
        return None
    return Child(int(said), Connection(descriptors[0]))


def exit_status(control: socket.socket, seconds: float) -> int | None:
    """Wait for the end of a nursery's child; None where it does not come."""
    said = _said(control, seconds)
    return int(said) if said else None


def _said(control: socket.socket, seconds: float) -> bytes:
    with suppress(OSError):
        if select.select([control], [], [], seconds)[0]:
            return control.recv(_LONGEST_MESSAGE)
    return b""
