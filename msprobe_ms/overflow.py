"""Task overflow_check: only calls that hold an infinity or a NaN are recorded, with their tensors (§23)."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import BinaryIO

from msprobe_ms.log import logger
from msprobe_ms.store.writer import DumpStore, TensorFiles
from msprobe_ms.summary import Statistics

Write = Callable[[BinaryIO], None]


class OverflowQuota:
    """How many entries a debugger still records, over all its steps; -1 for any number."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0
        self._lock = threading.Lock()

    @property
    def spent(self) -> bool:
        return self._taken == self._limit

    def take(self, entry: str) -> bool:
        """Count ``entry``; False when it is one too many."""
        with self._lock:
            if self.spent:
                return False
            self._taken += 1
        logger.warning("overflow_check: %s holds an infinity or a NaN (%d)", entry, self._taken)
        if self.spent:
            logger.warning("overflow_check: overflow_nums %d is reached, recording ends", self._limit)
        return True


class _Held:
    """An entry whose call is not over yet."""

    __slots__ = ("fields", "files", "overflows")

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self.files: dict[str, Write] = {}
        self.overflows = False


class OverflowGate:
    """Stands before the store: holds each entry and its tensors until its call is over, passes it on if it overflows.

    Memory: the tensors of the calls that are open, one inside the other, and of those whose backward has begun.
    """

    def __init__(self, store: DumpStore, files: TensorFiles, quota: OverflowQuota) -> None:
        self._store = store
        self._files = files
        self._quota = quota
        self._held: dict[str, _Held] = {}
        self._recorded: set[str] = set()

    @property
    def full(self) -> bool:
        """Whether nothing new will be recorded."""
        return self._quota.spent

    def call_site(self, number: int, frames: Sequence[str]) -> None:
        self._store.call_site(number, frames)

    def figures(self, entry: str, figures: Statistics) -> None:
        """Take note of a tensor's figures."""
        if any(isinstance(value, float) and not math.isfinite(value) for value in figures[:2]):
            self._hold(entry).overflows = True

    def tensor(self, data_name: str, write: Write, entry: str) -> None:
        self._hold(entry).files[data_name] = write

    def entry(
        self,
        name: str,
        fields: Iterable[tuple[str, str]],
        parent: str | None = None,
        call_site: int | None = None,
        *,
        complete: bool = True,
        stays: bool = False,
    ) -> None:
        held = self._hold(name)
        held.fields.update(fields)
        if complete:
            del self._held[name]
        if name not in self._recorded:
            if not (held.overflows and self._quota.take(name)):
                return
            self._recorded.add(name)
        for data_name, write in held.files.items():
            self._files.tensor(data_name, write, name)
        self._store.entry(name, held.fields.items(), parent, call_site, stays=stays)
        held.fields, held.files = {}, {}

    def _hold(self, entry: str) -> _Held:
        return self._held.setdefault(entry, _Held())
