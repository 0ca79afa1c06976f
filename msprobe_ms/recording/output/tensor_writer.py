"""``async_dump``: write tensor files in a thread of their own, so that training goes on meanwhile."""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from queue import SimpleQueue
from typing import NamedTuple

from msprobe_ms.dump.writing.memory_budget import Copy, MemoryBudget, OutOfMemory, Write
from msprobe_ms.dump.writing.writer import DumpStore
from msprobe_ms.recording.output.error_log import ErrorLog
from msprobe_ms.support.translation import tr

#: How long training waits for a disk that takes nothing, in seconds; and the slowest disk that does take something, in
#: bytes a second.
PATIENCE, SLOWEST = 10.0, 1e7
#: How long a thread may take to begin, in seconds: without memory it never does.
_BEGINNING = 10


class _Job(NamedTuple):
    data_name: str
    write: Write
    size: int


class TensorWriter:
    """An `EntrySink` that writes copies of tensors later, as many as ``budget`` allows; entries go straight on.

    With more, training waits for the disk; with a disk that stands still they are left out, which is reported.
    There is no lock that both sides take: a signal handler may end the recording in the middle of `tensor`.
    Where no thread can be had, tensors are written at once.
    """

    #: The store records all that it is given.
    full = False

    def __init__(self, store: DumpStore, budget: MemoryBudget, errors: ErrorLog) -> None:
        self._store = store
        self._budget = budget
        self._errors = errors
        #: When the file that is being written must be done, or the disk stands still.
        self._due = budget.due
        # Handed on as they come.
        self.call_site, self.entry, self.forget = store.call_site, store.entry, store.forget
        #: An event in the place of a job is set when everything before it is done.
        self._jobs: SimpleQueue[_Job | threading.Event | None] = SimpleQueue()
        #: Set when the thread is over; None where there is none.
        self._over: threading.Event | None = None

    def run(self, unrecorded: Callable[[], AbstractContextManager[None]]) -> None:
        """Begin. Writing may call the framework, which happens inside ``unrecorded()``."""
        begun, over = threading.Event(), threading.Event()
        try:
            # `threading.Thread.start` waits for ever for a thread that has no memory to begin.
            _thread.start_new_thread(self._work, (unrecorded, begun, over))
        except RuntimeError as error:
            return self._errors.report(error, "async_dump", lost=False)
        if not begun.wait(_BEGINNING):
            late = TimeoutError(f"the thread that writes tensors did not begin within {_BEGINNING} s")
            self._jobs.put(None)  # should it begin after all
            return self._errors.report(late, "async_dump", lost=False)
        self._over = over

    def tensor(self, data_name: str, write: Write, entry: str, copy: Copy | None = None) -> bool:
        """Write ``copy`` later. Without one, or where it is too large ever to be held, all that waits is written first.

        Raises OutOfMemory where neither is possible for now, OSError when the disk refuses.
        """
        if self._over is None or self._store.refuses(entry):
            return self._store.tensor(data_name, write, entry)
        if copy is None or not self._budget.fits(copy.size):
            self.drain()
            return self._store.tensor(data_name, write, entry)
        if not self._budget.take_when_free(copy.size):
            raise OutOfMemory(tr("{budget} is in use and the disk takes nothing", budget=self._budget))
        try:
            job = _Job(data_name, copy.make(), copy.size)
        except BaseException:
            self._budget.give(copy.size)
            raise
        self._jobs.put(job)
        if not self._due.get(self):
            self._due[self] = _deadline(copy.size)
        return True

    def drain(self) -> None:
        """Wait until everything given so far is on disk."""
        if self._over is not None:
            done = threading.Event()
            self._jobs.put(done)
            done.wait()

    def close(self) -> None:
        """Drain and end the thread."""
        over, self._over = self._over, None
        if over is not None:
            self._jobs.put(None)
            over.wait()
        self._due.pop(self, None)  # which holds this and its store

    def _work(
        self,
        unrecorded: Callable[[], AbstractContextManager[None]],
        begun: threading.Event,
        over: threading.Event,
    ) -> None:
        begun.set()
        while self._write_next(unrecorded):
            continue
        over.set()

    def _write_next(self, unrecorded: Callable[[], AbstractContextManager[None]]) -> bool:
        # A frame of its own, so that a tensor written is let go before the next is waited for.
        if (job := self._jobs.get()) is None:
            return False
        if isinstance(job, threading.Event):
            job.set()
            return True
        size = job.size
        self._due[self] = _deadline(size)
        try:
            with unrecorded():
                self._store.write(job.data_name, job.write)
        except Exception as error:
            self._errors.report(error, job.data_name)
        del job
        self._due[self] = 0.0 if self._jobs.empty() else _deadline(0)
        self._budget.hand_back(size)
        return True


def _deadline(size: int) -> float:
    return time.monotonic() + PATIENCE + size / SLOWEST
