"""The memory that a recording may hold beside the training's own: the configuration's ``max_memory``."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import BinaryIO, NamedTuple

from msprobe_ms.support.translation import tr

#: Writes a tensor into a file.
Write = Callable[[BinaryIO], None]

MIB = 1 << 20

#: What holding anything takes beside its bytes: a writer, an array object, a place in a queue.
_OVERHEAD = 1 << 10

#: Copies of tensors leave this part of the limit to what must stay, so that a copy never costs an entry: of 2048 MiB
#: 256, which find 200,000 entries.
_LEFT_TO_STAY = 8


class Copy(NamedTuple):
    """How a tensor is kept for its file: ``make`` copies its ``size`` bytes and gives what writes the copy."""

    size: int
    make: Callable[[], Write]


class OutOfMemory(Exception):
    """``max_memory`` is in use; what it was asked for is left out."""


class MemoryBudget:
    """Counts the bytes that a recording holds, up to ``limit``; safe to use from several threads.

    Whatever records a step in a process shares one: what copies tensors takes bytes and gives them back, what finds
    entries in a journal stays for as long as the budget.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        #: Bytes that come and go, and bytes that stay.
        self._held, self._staying = 0, 0
        self._lock = threading.RLock()  # a signal handler may end the recording meanwhile
        #: Sizes handed back by threads that must not wait for a lock of training's, nor training for one of theirs.
        self._handed_back: SimpleQueue[int] = SimpleQueue()
        #: The bytes that may come and go.
        self._room = limit - limit // _LEFT_TO_STAY
        #: Who hands back → the time (`time.monotonic`) by which it does, or its disk stands still; 0 where it holds
        #: nothing. Whoever hands back writes its own.
        self.due: dict[object, float] = {}

    def fits(self, size: int) -> bool:
        """Whether that many bytes could be taken if no others were."""
        return size + _OVERHEAD <= self._room

    def take(self, size: int) -> bool:
        """Count ``size`` bytes more; False, and nothing is counted, where that is too much."""
        while not self._handed_back.empty():
            self.wait(0)
        with self._lock:
            if self._held + size + _OVERHEAD > self._room:
                return False
            self._held += size + _OVERHEAD
        return True

    def take_when_free(self, size: int) -> bool:
        """The same, as soon as there is enough; False where nothing is handed back in time."""
        while not self.take(size):
            if not self._comes_back():
                return self.take(size)
        return True

    def stay(self, size: int) -> bool:
        """Count ``size`` bytes that are never given back, as soon as there is room; False where nothing makes room."""
        while not self._stay(size):
            if not self._comes_back():
                return self._stay(size)
        return True

    def _stay(self, size: int) -> bool:
        while not self._handed_back.empty():
            self.wait(0)
        with self._lock:
            if self._held + self._staying + size + _OVERHEAD > self.limit:
                return False
            self._staying += size + _OVERHEAD
            self._room = min(self._room, self.limit - self._staying)
        return True

    def give(self, size: int) -> None:
        """What was taken with this size is let go."""
        with self._lock:
            self._held -= size + _OVERHEAD

    def hand_back(self, size: int) -> None:
        """The same, from another thread: it counts when something is taken next."""
        self._handed_back.put(size)

    def _comes_back(self) -> bool:
        """Wait for something to be handed back; False where that is not to be expected (any more)."""
        left = self._latest() - time.monotonic()
        # The disk may have begun with another file meanwhile, which has a time of its own.
        return left > 0 and (self.wait(left) or time.monotonic() < self._latest())

    def _latest(self) -> float:
        return max(list(self.due.values()), default=0.0)

    def wait(self, seconds: float) -> bool:
        """Wait for something to be handed back; whether it was."""
        with suppress(Empty):
            self.give(self._handed_back.get(timeout=seconds) if seconds else self._handed_back.get_nowait())
            return True
        return False

    def __str__(self) -> str:
        return tr("max_memory, {limit:g} MiB,", limit=self.limit / MIB)
