"""What a step's recording may hold of tensors beside the training's own: the configuration's ``max_memory``."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import BinaryIO, NamedTuple

#: Writes a tensor into a file.
Write = Callable[[BinaryIO], None]

MIB = 1 << 20

#: What holding anything takes beside its bytes: a writer, an array object, a place in a queue.
_OVERHEAD = 1 << 10


class Copy(NamedTuple):
    """How a tensor is kept for its file: ``make`` copies its ``size`` bytes and gives what writes the copy."""

    size: int
    make: Callable[[], Write]


class OutOfMemory(Exception):
    """``max_memory`` is in use; what it was asked for is left out."""


class Memory:
    """Counts bytes held, up to ``limit``; safe to use from several threads."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._held = 0
        self._lock = threading.RLock()  # a signal handler may end the recording meanwhile
        #: Sizes handed back by threads that must not wait for a lock of training's, nor training for one of theirs.
        self._handed_back: SimpleQueue[int] = SimpleQueue()

    def fits(self, size: int) -> bool:
        """Whether that many bytes could be taken if nothing else was."""
        return size + _OVERHEAD <= self.limit

    def take(self, size: int) -> bool:
        """Count ``size`` bytes more; False, and nothing is counted, where that is too much."""
        while not self._handed_back.empty():
            self.wait(0)
        with self._lock:
            if self._held + size + _OVERHEAD > self.limit:
                return False
            self._held += size + _OVERHEAD
        return True

    def give(self, size: int) -> None:
        """What was taken with this size is let go."""
        with self._lock:
            self._held -= size + _OVERHEAD

    def hand_back(self, size: int) -> None:
        """The same, from another thread: it counts when something is taken next."""
        self._handed_back.put(size)

    def wait(self, seconds: float) -> bool:
        """Wait for something to be handed back; whether it was."""
        with suppress(Empty):
            self.give(self._handed_back.get(timeout=seconds) if seconds else self._handed_back.get_nowait())
            return True
        return False

    def __str__(self) -> str:
        return f"max_memory, {self.limit / MIB:g} MiB,"
