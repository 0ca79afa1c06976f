"""Run something on many calls in workers, each of which has the processes that hold the frameworks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from msprobe_ms.accuracy.execution.check import Task
from msprobe_ms.support.workers import Lost, Pool, processes, run_in_order

#: Memory of the processes of one worker, with both frameworks, in bytes.
WORKER_MEMORY = 1 << 30

Result = TypeVar("Result")


def in_workers(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    lost: Callable[[Task, str], Result],
    workers: int,
    pool: Pool | None = None,
) -> Iterator[Result]:
    """Yield what ``function`` gives for each task, in their order; what ``lost`` gives for a task whose worker died.

    ``pool``: where tasks run; without one, that many ``workers`` of this machine.
    """
    if not tasks:
        return
    own = pool is None
    pool = processes(len(tasks), WORKER_MEMORY, most=workers) if pool is None else pool
    try:
        for task, result in zip(tasks, run_in_order(function, tasks, pool), strict=True):
            yield lost(task, result.reason) if isinstance(result, Lost) else result
    finally:
        if own:
            pool.close()
