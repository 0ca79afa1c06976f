"""Run many comparisons on one ``concurrent.futures.Executor``, whatever it is; a worker that dies costs a retry."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr

_WORKERS_DIED = tr("every worker that ran it died, perhaps for want of memory")

Task = TypeVar("Task")
Result = TypeVar("Result")

#: How often a task is run again whose worker died.
RETRIES = 2
#: Results that may wait for an earlier one, for each that is computed at a time.
_AHEAD = 4
#: What a comparison needs at most beside its dumps, in bytes: interpreter, numpy, one pair of large tensors.
_BASE_MEMORY = 300 * 2**20
#: Tasks handed at a time to an executor that does not tell how many it runs.
_UNKNOWN_WIDTH = 64


@dataclass(frozen=True)
class Lost:
    """A task without a result, and why."""

    reason: str


@dataclass
class Pool:
    """Where tasks run. ``width``: how many at a time; ``renew`` makes the executor, again after it broke; None where it
    is its owner's."""

    executor: Executor
    width: int
    renew: Callable[[], Executor] | None = None

    def close(self) -> None:
        if self.renew is not None:
            self.executor.shutdown(wait=True, cancel_futures=True)

    def mend(self) -> bool:
        """A fresh executor in place of a broken one; False where that is not ours to make."""
        if self.renew is None:
            return False
        self.executor.shutdown(wait=False, cancel_futures=True)
        self.executor = self.renew()
        return True


def processes(tasks: int, largest: int = 0, most: int | None = None) -> Pool:
    """Make a pool of processes: no more than there are tasks, or than memory allows.

    ``largest``: bytes of memory that the largest of the tasks takes. ``most``: processes at most; as a rule, as many as
    there are cores.
    """
    need = _BASE_MEMORY + largest
    width = max(1, min(most or _cores(), tasks, free_memory() // need))

    def make() -> Executor:
        return _Processes(width, mp_context=get_context("spawn"), initializer=_begin_worker)

    return Pool(make(), width, make)


def given(executor: Executor) -> Pool:
    """Make a pool of an executor of the caller's, who also ends it."""
    return Pool(executor, _UNKNOWN_WIDTH)


def run_in_order(function: Callable[[Task], Result], tasks: Sequence[Task], pool: Pool) -> Iterator[Result | Lost]:
    """Run ``function`` on all tasks; yield results in their order. Few are under way at a time, so few are held.

    A task whose worker died is run again, alone, so that what is to blame is known and has the machine to itself; after
    ``RETRIES`` times it is ``Lost``. So is one that raises.
    """
    run = _Run(function, tasks, pool)
    for number in range(len(tasks)):
        while number not in run.done:
            run.go_on(number)
        yield run.done.pop(number)


class _Run(Generic[Task, Result]):
    def __init__(self, function: Callable[[Task], Result], tasks: Sequence[Task], pool: Pool) -> None:
        self._function, self._tasks, self._pool = function, tasks, pool
        self._waiting = deque(range(len(tasks)))
        self._suspects: deque[int] = deque()
        self._deaths: Counter[int] = Counter()
        self._running: dict[Future[Result], int] = {}
        self._broken = False
        self.done: dict[int, Result | Lost] = {}

    def go_on(self, wanted: int) -> None:
        """Hand out what may be, then wait for something to end."""
        self._submit(wanted)
        if self._running:
            for future in wait(self._running, return_when=FIRST_COMPLETED).done:
                self._take(self._running.pop(future), future)
        if self._broken and not self._running:
            self._broken = not self._pool.mend()
            if self._broken:
                self._give_up()

    def _submit(self, wanted: int) -> None:
        if self._broken:
            return
        if self._suspects:
            if not self._running:
                self._start(self._suspects.popleft())
            return
        last = wanted + _AHEAD * self._pool.width
        while self._waiting and self._waiting[0] < last and len(self._running) < self._pool.width and not self._broken:
            self._start(self._waiting.popleft())

    def _start(self, number: int) -> None:
        try:
            self._running[self._pool.executor.submit(self._function, self._tasks[number])] = number
        except BrokenExecutor:  # a worker died while it had nothing to do
            self._broken = True
            self._died(number, "")
        except RuntimeError as error:  # its owner has shut it down
            self._broken = True
            self.done[number] = Lost(tr("the executor accepts no more work: {error}", error=error))

    def _take(self, number: int, future: Future[Result]) -> None:
        try:
            self.done[number] = future.result()
        except (BrokenExecutor, CancelledError) as error:
            self._broken = True
            self._died(number, str(error))
        except Exception as error:
            logger.debug("comparison %d failed", number, exc_info=True)
            # Dask's, which is not imported where no cluster is used; it has run the task again by itself.
            killed = type(error).__name__ == "KilledWorker"
            self.done[number] = Lost(_WORKERS_DIED if killed else f"{type(error).__name__}: {error}")

    def _died(self, number: int, reason: str) -> None:
        self._deaths[number] += 1
        if self._deaths[number] > RETRIES:
            self.done[number] = Lost(_WORKERS_DIED)
            return
        logger.warning(
            tr("a worker died ({reason}): its comparisons are run again", reason=reason or tr("no reason is known"))
        )
        self._suspects.append(number)

    def _give_up(self) -> None:
        """Whoever owns the executor has ended it, or it broke for good."""
        reason = tr("the executor accepts no more work: one of its workers died, or it was shut down")
        for number in (*self._suspects, *self._waiting):
            self.done[number] = Lost(reason)
        self._suspects.clear()
        self._waiting.clear()


class _Processes(ProcessPoolExecutor):
    """Workers that begin without the script that began them: it may have no ``if __name__ == "__main__"``."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        with _no_main():  # a process is started here when one is wanted
            return super().submit(fn, *args, **kwargs)


@contextmanager
def _no_main() -> Iterator[None]:
    """Spawned processes run the file of ``__main__`` anew; what is called here lies in modules, which need no such."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _begin_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupted comparison ends without a word from every worker
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process soon after the one that began it: nobody would take its results, or end it."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def free_memory() -> int:
    """Return the bytes this process may still take; where the system does not tell, as good as all."""
    return min(_available(), _left_in_group())


def _available() -> int:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return sys.maxsize


def _left_in_group() -> int:
    """What the control group (a container) leaves, v2 and v1."""
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            root = Path("/sys/fs/cgroup")
            return max(0, int((root / limit).read_text()) - int((root / used).read_text()))
        except (OSError, ValueError):
            continue
    return sys.maxsize
