"""A process that has imported a framework and forks the ones that run its APIs: an import takes seconds, a fork none.

The nursery itself computes nothing, so each of its children begins as one that has just imported the framework. One
child lives at a time. Over the control socket comes a byte for each child that is wanted; back goes the child's id with
one end of a connection to it, and its exit status when it is over.
"""

from __future__ import annotations

import ctypes
import gc
import os
import select
import signal
import socket
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import NamedTuple, NoReturn

#: What a nursery says when it has imported everything.
READY = b"ready\n"

Serve = Callable[[Connection], None]


class Child(NamedTuple):
    """A process that a nursery forked: the leader of a group of its own."""

    id: int
    connection: Connection


def keep(control: socket.socket, serve: Serve) -> None:
    """Fork a child that runs ``serve`` for each byte that comes, until the other end is closed."""
    gc.freeze()  # no child looks at what is imported, which would copy it
    control.sendall(READY)
    while control.recv(1):
        ours, theirs = socket.socketpair()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads: libraries' own, which wait
            child = os.fork()
        if child == 0:
            control.close()
            ours.close()
            _be_child(Connection(theirs.detach()), serve)
        theirs.close()
        with ours:
            socket.send_fds(control, [f"{child}\n".encode()], [ours.fileno()])
        _, status = os.waitpid(child, 0)
        control.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _be_child(connection: Connection, serve: Serve) -> NoReturn:
    status = 1
    try:
        os.setsid()
        end_with_parent()
        serve(connection)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def end_with_parent() -> None:
    """Have Linux end this process with the one that began it: an API that hangs would outlive it."""
    set_parent_death_signal = 1  # PR_SET_PDEATHSIG of prctl(2)
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def is_ready(control: socket.socket, seconds: float) -> bool:
    """Wait for a nursery to have imported everything; False where it ended or takes longer."""
    return _line(control, seconds) == READY.strip()


def fork(control: socket.socket, seconds: float) -> Child | None:
    """Ask a nursery for a child; None where it ended. Raises OSError where the connection is broken."""
    control.sendall(b"f")
    if not select.select([control], [], [], seconds)[0]:
        return None
    said, descriptors, _, _ = socket.recv_fds(control, 32, 1)
    if not descriptors:
        return None
    return Child(int(said), Connection(descriptors[0]))


def exit_status(control: socket.socket, seconds: float) -> int | None:
    """Wait for the end of a nursery's child; None where it does not come."""
    line = _line(control, seconds)
    return int(line) if line else None


def _line(control: socket.socket, seconds: float) -> bytes:
    found = b""
    with suppress(OSError):
        while not found.endswith(b"\n") and select.select([control], [], [], seconds)[0]:
            received = control.recv(1)
            if not received:
                return b""
            found += received
    return found.strip()
