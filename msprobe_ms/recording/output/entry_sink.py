"""The protocol of what takes the entries of a step: the dump itself, or a stage before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msprobe_ms.dump.writing.memory_budget import Copy, Write
from msprobe_ms.dump.writing.writer import EntryPart


class EntrySink(Protocol):
    """Takes the entries of one step, their call sites and their tensors; a `DumpStore`, or a stage before one.

    A stage holds the sink that comes after it, and hands on what it does not hold back itself. Whatever fails raises.
    """

    @property
    def full(self) -> bool:
        """Whether nothing new will be recorded."""
        ...

    def call_site(self, number: int, frames: Sequence[str]) -> None:
        """Record the frames of a call site, innermost first, under a number that entries name."""
        ...

    def tensor(self, data_name: str, write: Write, entry: str, copy: Copy | None = None) -> bool:
        """Store a tensor of ``entry`` in the file ``data_name``.

        ``write`` writes the tensor as it is now; a stage that does not do so at once has ``copy`` make a copy of it.
        Returns False where there will be no file, which is said if its entry is recorded.
        """
        ...

    def entry(self, part: EntryPart) -> None:
        """Record an entry, or a part of one, whose tensors have been handed over."""
        ...

    def forget(self, name: str) -> None:
        """Drop what is held of an entry whose call raised."""
        ...
