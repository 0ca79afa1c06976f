"""Delay entries until the statistics they contain have been read back from a device.

Each read-back makes training wait for the device; one fetches the statistics of hundreds of tensors.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from msprobe_ms.dump.writing.json_text import DeferredStatistic
from msprobe_ms.dump.writing.writer import EntryPart
from msprobe_ms.recording.output.error_log import ErrorLog

if TYPE_CHECKING:
    from msprobe_ms.recording.output.step_dump import EntrySink

#: Tensors that one read-back is for at most. As many, or as many entries, or the first of them being as old as this in
#: seconds when another comes, have all fetched.
MOST, LONGEST = 1024, 1.0

#: What is on a device, and the statistics that are to be read from it.
_OnDevice = tuple[Any, tuple[DeferredStatistic, ...]]


class DeferredStatistics:
    """An `EntrySink` that delays entries until their statistics are there, in their order; others go straight on.

    What waits is lost where the process is killed; a script that ends in any other way has it fetched.
    """

    #: What comes after records all that it is given.
    full = False

    def __init__(self, sink: EntrySink, read: Callable[[Sequence[Any]], Sequence[Iterable[Any]]], errors: ErrorLog):
        """``read`` gives four statistics, sketch and checksum of each of several tensors, in one read-back."""
        self._sink = sink
        self._read = read
        self._errors = errors
        # Handed on as they come.
        self.call_site, self.tensor, self.forget = sink.call_site, sink.tensor, sink.forget
        # Both only grow at their ends, which takes no lock: who adds may be what a reader waits for.
        self._on_device: deque[_OnDevice] = deque()
        self._entries: deque[EntryPart] = deque()
        self._since = 0.0
        self._fetching = threading.RLock()  # a signal handler may end the recording meanwhile

    @property
    def waits(self) -> bool:
        """Whether there are entries that are not recorded yet."""
        return bool(self._entries)

    def of(self, on_device: Any) -> Sequence[DeferredStatistic]:
        """Defer Max, Min, Mean, Norm, sketch and checksum of a tensor; ``on_device`` is what ``read`` takes of it."""
        deferred = tuple(DeferredStatistic() for _ in range(6))
        self._on_device.append((on_device, deferred))
        return deferred

    def entry(self, part: EntryPart) -> None:
        """Record an entry, or a part of one; of one that waits, what goes wrong is reported when it is written."""
        if not self._entries and not self._on_device:
            return self._sink.entry(part)
        if not self._entries:
            self._since = time.monotonic()
        self._entries.append(part)
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
        while self._entries or self._on_device:
            # Those that other threads add from here on wait for figures that may not be among those that are read now.
            entries = list(self._entries)
            while some := list(islice(self._on_device, MOST)):
                self._fill(some)
                for each in some:
                    _take_off(self._on_device, each)
            for waiting in entries:
                self._record(waiting)

    def _record(self, waiting: EntryPart) -> None:
        try:
            waiting.encode()
            if self._entries and self._entries[0] is waiting:
                self._sink.entry(waiting)
        except Exception as error:
            self._errors.report(error, waiting.name)
        _take_off(self._entries, waiting)

    def _fill(self, some: Sequence[_OnDevice]) -> None:
        try:
            found = self._read([on_device for on_device, _ in some])
        except Exception as error:  # entries without statistics still say what was called
            if len(some) == 1:
                self._errors.report(error, "the figures of a tensor on its device")
            for each in some if len(some) > 1 else ():
                self._fill([each])
            return
        for (_, deferred), values in zip(some, found, strict=True):
            for statistic, value in zip(deferred, values, strict=True):
                statistic.value = value


def _take_off(waiting: deque[Any], first: Any) -> None:
    if waiting and waiting[0] is first:
        waiting.popleft()
