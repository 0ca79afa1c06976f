"""Tasks of workers, in a module that imports next to nothing: each worker that is begun imports it anew."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def double(number: int) -> int:
    return 2 * number


def slow_first(number: int) -> int:
    time.sleep(0.3 if number == 0 else 0)
    return number


def dies_once(marker: str) -> str:
    """Kills its worker, as the system does for want of memory: ``….dies`` the first time, ``….kills`` every time."""
    path = Path(marker)
    if path.suffix == ".kills":
        os.kill(os.getpid(), signal.SIGKILL)
    if path.suffix == ".dies" and not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return path.name


def dies_if_odd(number: int) -> int:
    if number % 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def raises(number: int) -> int:
    raise MemoryError("too large")
