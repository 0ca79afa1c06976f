"""``async_dump``: tensor files written by a thread of their own, so that training goes on meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from queue import SimpleQueue
from typing import NamedTuple

from msprobe_ms.store.memory import Copy, Memory, OutOfMemory, Write
from msprobe_ms.store.writer import DumpStore
from msprobe_ms.trouble import Trouble

#: How long training waits for a disk that takes nothing, in seconds; and the slowest disk that does take something, in
#: bytes a second.
PATIENCE, SLOWEST = 10.0, 1e7


class _Job(NamedTuple):
    data_name: str
    write: Write
    entry: str
    size: int


class TensorWorker:
    """Stands before a store and writes copies of its tensors later, as many as ``memory`` allows.

    With more, training waits for the disk; with a disk that stands still they are left out, which ``trouble`` is told.
    """

    def __init__(self, store: DumpStore, memory: Memory, trouble: Trouble) -> None:
        self._store = store
        self._memory = memory
        self._trouble = trouble
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        #: Guards what follows, and tells when a job is done.
        self._moved = threading.Condition()
        self._unwritten = 0
        #: When the file that is being written must be done, or the disk stands still.
        self._due = 0.0

    def run(self, unrecorded: Callable[[], AbstractContextManager[None]]) -> None:
        """Begin. Writing may call the framework, which happens inside ``unrecorded()``."""
        self._thread = threading.Thread(target=self._work, args=(unrecorded,), name="msprobe_ms tensors", daemon=True)
        self._thread.start()

    def tensor(self, data_name: str, write: Write, entry: str, copy: Copy | None = None) -> bool:
        """Write ``copy`` later. Without one, or where it is too large ever to be held, all that waits is written first.

        Raises OutOfMemory where neither is possible for now, OSError when the disk refuses.
        """
        if copy is None or not self._memory.fits(copy.size):
            self.drain()
            return self._store.tensor(data_name, write, entry)
        with self._moved:
            while not self._memory.take(copy.size):
                left = self._due - time.monotonic()
                if not self._unwritten or left <= 0:
                    raise OutOfMemory(f"{self._memory} is in use and the disk takes nothing")
                self._moved.wait(left)
            self._unwritten += 1
            if self._unwritten == 1:
                self._begins(copy.size)
        try:
            job = _Job(data_name, copy.make(), entry, copy.size)
        except BaseException:
            self._done(copy.size)
            raise
        self._jobs.put(job)
        return True

    def drain(self) -> None:
        """Wait until everything given so far is on disk."""
        with self._moved:
            self._moved.wait_for(lambda: not self._unwritten)

    def close(self) -> None:
        """Drain and end the thread."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            thread.join()

    def _work(self, unrecorded: Callable[[], AbstractContextManager[None]]) -> None:
        while self._write_next(unrecorded):
            continue

    def _write_next(self, unrecorded: Callable[[], AbstractContextManager[None]]) -> bool:
        # A frame of its own, so that a tensor written is let go before the next is waited for.
        if (job := self._jobs.get()) is None:
            return False
        with self._moved:
            self._begins(job.size)
        size = job.size
        try:
            with unrecorded():
                self._store.tensor(job.data_name, job.write, job.entry)
        except Exception as error:
            self._trouble.report(error, job.data_name)
        del job
        self._done(size)
        return True

    def _begins(self, size: int) -> None:
        self._due = time.monotonic() + PATIENCE + size / SLOWEST

    def _done(self, size: int) -> None:
        with self._moved:
            self._memory.give(size)
            self._unwritten -= 1
            self._moved.notify_all()
