"""A lock of threads that cannot be lost: an interrupt may come just before a thread gives it back."""

from __future__ import annotations

import threading
from contextlib import suppress

#: Seconds after which a turn counts as lost. What is done in one takes milliseconds, and seconds on a slow disk.
LONGEST = 60.0


class Turn:
    """One thread at a time is within ``with turn:``, as often as it likes.

    Where an interrupt left the turn with a thread that does not know of it, `give_back` takes it from this thread, and
    another thread waits no longer than ``longest`` seconds: no training hangs for our lock.
    """

    def __init__(self, longest: float = LONGEST) -> None:
        self._lock, self._longest = threading.RLock(), longest

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=self._longest):
            self._lock = threading.RLock()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        with suppress(RuntimeError):  # it was given back, or counted as lost
            self._lock.release()

    def give_back(self) -> None:
        """Give back all that this thread has of the turn."""
        with suppress(RuntimeError):
            while True:
                self._lock.release()
