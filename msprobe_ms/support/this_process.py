"""Tell the process that made an object from its forked children."""

from __future__ import annotations

import os


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
