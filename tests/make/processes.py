"""What processes that tests start need: an environment that finds the package and its tools, and a free port."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

from repository import PYTHONPATH


def environment() -> dict[str, str]:
    # msrun starts the `python` it finds.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": PYTHONPATH, "PYTHONDONTWRITEBYTECODE": "1"}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
