"""Work that a forked child of this process does beside it: the child knows all that this process knew."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msprobe_ms.support.process import end_with_parent


@contextmanager
def beside(work: Callable[[], object], *, forks: bool) -> Iterator[None]:
    """Have ``work`` done while the body of the ``with`` runs, at the latest when that is over.

    ``forks``: this process may be forked. Other threads may hold locks, for which a child would wait for ever, so that
    only a process may be whose threads are known. Where it may not, the work is done here, before the body; where no
    child could be made, or one failed, behind it: what the work raises is raised here. What a child does shows in files
    alone.
    """
    if not forks:
        work()
        yield
        return
    child = _forked(work)
    try:
        yield
    finally:
        done = child is not None and _ended_well(child)
    if not done:
        work()


def _forked(work: Callable[[], object]) -> int | None:
    """The process number of a child that does the work; None where none could be made."""
    try:
        child = os.fork()
    except OSError:
        return None
    if child:
        return child
    status = 1
    try:
        end_with_parent()
        work()
        status = 0
    finally:
        os._exit(status)  # whatever was raised, it is raised again where the parent does the work


def _ended_well(child: int) -> bool:
    try:
        return os.waitpid(child, 0)[1] == 0
    except ChildProcessError:  # where the parent of this process has it ignore the ends of its children
        return False
