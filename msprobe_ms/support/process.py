"""What holds for this process alone: whether it is a forked child, and garbage collection paused in it."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager


class ThisProcess:
    """The process in which it was made.

    A forked child (a data loader's worker) inherits hooks and open files but must not write into its parent's dump.
    """

    __slots__ = ("_id",)

    def __init__(self) -> None:
        self._id = os.getpid()

    @property
    def is_mine(self) -> bool:
        """Whether the process that asks is the one that made this, and no forked child of it."""
        return os.getpid() == self._id


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Pause the search for cycles: among the million objects of a dump and its comparison it costs a fifth of all.

    What is not part of a cycle is freed as ever.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
