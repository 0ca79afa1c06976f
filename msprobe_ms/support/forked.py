"""Work that a forked child of this process does beside it: the child knows all that this process knew."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from msprobe_ms.support.process import end_with_parent

#: Seconds that an interrupted child is given to end by itself, once it is told to, and between two looks at it.
_BY_ITSELF, _TOLD, _LOOK = 0.5, 5.0, 0.02


@contextmanager
def beside(work: Callable[[], object], *, forks: bool) -> Iterator[None]:
    """Have ``work`` done while the body of the ``with`` runs, at the latest when that is over.

    ``forks``: this process may be forked. Other threads may hold locks, for which a child would wait for ever, so that
    only a process may be whose threads are known. Where it may not, the work is done here, before the body; where no
    child could be made, or one failed, behind it: what the work raises is raised here. What a child does shows in files
    alone. One that is interrupted with this process is waited for until it has taken back what it had begun.
    """
    if not forks:
        work()
        yield
        return
    child = _forked(work)
    try:
        try:
            yield
        except Exception:
            _ended_well(child)
            raise
        done = _ended_well(child)
    except (KeyboardInterrupt, SystemExit):
        _interrupt(child)
        raise
    if not done:
        work()


def _forked(work: Callable[[], object]) -> int | None:
    """The process number of a child that does the work; None where none could be made."""
    parent, status = os.getpid(), 1
    try:
        if child := os.fork():
            return child
        end_with_parent()
        work()
        status = 0
    except OSError:  # there are too many processes
        pass
    finally:
        if os.getpid() != parent:
            os._exit(status)  # whatever was raised, it is raised again where the parent does the work
    return None


def _ended_well(child: int | None) -> bool:
    try:
        return child is not None and os.waitpid(child, 0)[1] == 0
    except ChildProcessError:  # where the parent of this process has it ignore the ends of its children
        return False


def _interrupt(child: int | None) -> None:
    """Wait for a child to end that the terminal has interrupted too; else interrupt it, and end it where it stays."""
    if child is None:
        return
    with suppress(ProcessLookupError, ChildProcessError):  # it has ended
        for seconds, signal_ in ((_BY_ITSELF, signal.SIGINT), (_TOLD, signal.SIGKILL)):
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                if os.waitpid(child, os.WNOHANG)[0]:
                    return
                time.sleep(_LOOK)
            os.kill(child, signal_)
        os.waitpid(child, 0)
