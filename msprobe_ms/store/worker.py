"""``async_dump``: tensor files written by a thread of their own, so that training goes on meanwhile."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from queue import SimpleQueue
from typing import BinaryIO

from msprobe_ms.store.writer import DumpStore
from msprobe_ms.trouble import Trouble

#: Tensors that may wait; with more, training waits for the disk and memory stays bounded.
_MOST_WAITING = 16
#: How long a thread may take to begin, in seconds: without memory it never does.
_PATIENCE = 10

Job = tuple[str, Callable[[BinaryIO], None], str]


class TensorWorker:
    """Stands before a store and writes its tensor files later. What it is given must be copies.

    There is no lock that training could hold when a signal handler ends the recording in the middle of `tensor`. Where
    no thread can be had, tensors are written at once.
    """

    def __init__(self, store: DumpStore, trouble: Trouble) -> None:
        self._store = store
        self._trouble = trouble
        #: An event in the place of a job is set when everything before it is done.
        self._jobs: SimpleQueue[Job | threading.Event | None] = SimpleQueue()
        self._places: SimpleQueue[None] = SimpleQueue()
        for _ in range(_MOST_WAITING):
            self._places.put(None)
        #: Set when the thread is over; None where there is none.
        self._over: threading.Event | None = None

    def run(self, unrecorded: Callable[[], AbstractContextManager[None]]) -> None:
        """Begin. Writing may call the framework, which happens inside ``unrecorded()``."""
        begun, over = threading.Event(), threading.Event()
        try:
            # `threading.Thread.start` waits for ever for a thread that has no memory to begin.
            _thread.start_new_thread(self._work, (unrecorded, begun, over))
        except RuntimeError as error:
            return self._trouble.report(error, "async_dump")
        if not begun.wait(_PATIENCE):
            late = TimeoutError(f"the thread that writes tensors did not begin within {_PATIENCE} s")
            return self._trouble.report(late, "async_dump")
        self._over = over

    def tensor(self, data_name: str, write: Callable[[BinaryIO], None], entry: str) -> None:
        if self._over is None:
            return self._store.tensor(data_name, write, entry)
        self._places.get()
        self._jobs.put((data_name, write, entry))

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

    def _work(
        self,
        unrecorded: Callable[[], AbstractContextManager[None]],
        begun: threading.Event,
        over: threading.Event,
    ) -> None:
        begun.set()
        while (job := self._jobs.get()) is not None:
            if isinstance(job, threading.Event):
                job.set()
                continue
            try:
                with unrecorded():
                    self._store.tensor(*job)
            except Exception as error:
                self._trouble.report(error, job[0])
            finally:
                self._places.put(None)
        over.set()
