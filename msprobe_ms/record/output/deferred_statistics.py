"""Figures that are still on a device, and the entries that wait for them.

To read a figure back makes training wait for the device; here one read-back fetches those of hundreds of tensors.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from msprobe_ms.dump.writing.json_text import DeferredStatistic, Figure, Value, Whole
from msprobe_ms.dump.writing.writer import DumpStore, entry_record
from msprobe_ms.record.output.error_log import ErrorLog

#: Tensors that one read-back is for at most. As many, or as many entries, or the first of them being as old as this in
#: seconds when another comes, have all fetched.
MOST, LONGEST = 1024, 1.0

#: What is on a device, and the figures that are to be read from it.
_OnDevice = tuple[Any, tuple[DeferredStatistic, ...]]


class _Waiting(NamedTuple):
    """An entry, or a part of one: ``record`` makes its record, once its figures are there."""

    name: str
    record: Callable[[], bytes]
    complete: bool


class DeferredStatistics:
    """Stands before a store. Where no figure is awaited, entries go straight on; else they wait, in their order.

    What waits is lost where the process is killed; a script that ends in any other way has it fetched.
    """

    def __init__(self, store: DumpStore, read: Callable[[Sequence[Any]], Sequence[Iterable[Any]]], trouble: ErrorLog):
        """``read`` gives the four figures of each of several tensors, in one read-back."""
        self._store = store
        self._read = read
        self._trouble = trouble
        # Both only grow at their ends, which takes no lock: who adds may be what a reader waits for.
        self._on_device: deque[_OnDevice] = deque()
        self._entries: deque[_Waiting] = deque()
        self._since = 0.0
        self._fetching = threading.RLock()  # a signal handler may end the recording meanwhile

    @property
    def full(self) -> bool:
        return self._store.full

    @property
    def waits(self) -> bool:
        """Whether there are entries that are not recorded yet."""
        return bool(self._entries)

    def of(self, figures: Any) -> Sequence[Figure]:
        """Max, Min, Mean, Norm of a tensor, of which ``figures`` is what ``read`` takes."""
        awaited = DeferredStatistic(), DeferredStatistic(), DeferredStatistic(), DeferredStatistic()
        self._on_device.append((figures, awaited))
        return awaited

    def call_site(self, number: int, frames: Sequence[str]) -> None:
        self._store.call_site(number, frames)

    def forget(self, name: str) -> None:
        self._store.forget(name)

    def entry(
        self,
        name: str,
        fields: Iterable[tuple[str, Value | Whole]],
        parent: str | None = None,
        call_site: int | None = None,
        *,
        complete: bool = True,
        stays: bool = False,
    ) -> None:
        """As `DumpStore.entry`; of an entry that waits, what goes wrong is reported when it is written."""
        if not self._entries and not self._on_device:
            return self._store.entry(name, fields, parent, call_site, complete=complete, stays=stays)
        if not self._entries:
            self._since = time.monotonic()
        record = partial(entry_record, name, list(fields), parent, call_site, stays=stays)
        self._entries.append(_Waiting(name, record, complete))
        many = max(len(self._on_device), len(self._entries)) >= MOST
        if (many or time.monotonic() - self._since > LONGEST) and self._fetching.acquire(blocking=False):
            try:
                self._fetch()
            finally:
                self._fetching.release()
        return None

    def fetch(self) -> None:
        """Read back what is on the device and record what waited for it. Does not raise."""
        with self._fetching:
            self._fetch()

    def _fetch(self) -> None:
        # A signal handler may do the same in the midst of it. What is not done stays where it is; what was done
        # meanwhile is seen before it is done again, but for a signal in the very moment of writing.
        while some := list(islice(self._on_device, MOST)):
            self._fill(some)
            for each in some:
                _take_off(self._on_device, each)
        while self._entries:
            waiting = self._entries[0]
            try:
                record = waiting.record()
                if self._entries and self._entries[0] is waiting:
                    self._store.add(waiting.name, record, complete=waiting.complete)
            except Exception as error:
                self._trouble.report(error, waiting.name)
            _take_off(self._entries, waiting)

    def _fill(self, some: Sequence[_OnDevice]) -> None:
        try:
            found = self._read([figures for figures, _ in some])
        except Exception as error:  # entries without figures still say what was called
            if len(some) == 1:
                self._trouble.report(error, "the figures of a tensor on its device")
            for each in some if len(some) > 1 else ():
                self._fill([each])
            return
        for (_, awaited), figures in zip(some, found, strict=True):
            for figure, value in zip(awaited, figures, strict=True):
                figure.value = value


def _take_off(waiting: deque[Any], first: Any) -> None:
    if waiting and waiting[0] is first:
        waiting.popleft()
