"""What processes that tests start need: an environment with the package and its tools, a free port, time to end."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

from repository import PYTHONPATH


def environment() -> dict[str, str]:
    # msrun starts the `python` it finds.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": PYTHONPATH}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def interruptible() -> None:
    """Let SIGINT end what is started next, though a shell in the background ignores it (``preexec_fn``)."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def eventually(found: Callable[[], list[str]], seconds: float = 30.0) -> list[str]:
    """Return what is still found after some time; processes that were given up may end a little later."""
    deadline = time.monotonic() + seconds
    while found() and time.monotonic() < deadline:
        time.sleep(0.05)
    return found()
