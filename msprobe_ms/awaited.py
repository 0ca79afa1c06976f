"""Figures that are still on a device, and the entries that wait for them.

To read a figure back makes training wait for the device; here one read-back fetches those of hundreds of tensors.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from msprobe_ms.store.text import AwaitedFigure, Figure, Value, Whole
from msprobe_ms.store.writer import DumpStore
from msprobe_ms.trouble import Trouble

#: Tensors that one read-back is for at most. As many, or as many entries, or the first of them being as old as this in
#: seconds when another comes, have all fetched.
MOST, LONGEST = 1024, 1.0

#: What is on a device, and the figures that are to be read from it.
_OnDevice = tuple[Any, tuple[AwaitedFigure, ...]]


class AwaitedFigures:
    """Stands before a store. Where no figure is awaited, entries go straight on; else they wait, in their order.

    What waits is lost where the process is killed; a script that ends in any other way has it fetched.
    """

    def __init__(self, store: DumpStore, read: Callable[[Sequence[Any]], Sequence[Iterable[Any]]], trouble: Trouble):
        """``read`` gives the four figures of each of several tensors, in one read-back."""
        self._store = store
        self._read = read
        self._trouble = trouble
        self._lock = threading.RLock()  # a signal handler may end the recording meanwhile
        self._on_device: list[_OnDevice] = []
        self._entries: deque[tuple[str, Callable[[], None]]] = deque()
        self._since = 0.0

    @property
    def full(self) -> bool:
        return self._store.full

    def of(self, figures: Any) -> Sequence[Figure]:
        """Max, Min, Mean, Norm of a tensor, of which ``figures`` is what ``read`` takes."""
        awaited = AwaitedFigure(), AwaitedFigure(), AwaitedFigure(), AwaitedFigure()
        with self._lock:
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
        write = partial(self._store.entry, name, list(fields), parent, call_site, complete=complete, stays=stays)
        with self._lock:
            if not self._entries:
                self._since = time.monotonic()
            self._entries.append((name, write))
        waiting = max(len(self._on_device), len(self._entries))
        if waiting >= MOST or time.monotonic() - self._since > LONGEST:
            self.fetch()
        return None

    @property
    def waits(self) -> bool:
        """Whether there are entries that are not recorded yet."""
        return bool(self._entries)

    def fetch(self) -> None:
        """Read back what is on the device and record what waited for it. Does not raise."""
        # A signal handler may do the same in the midst of it: what is not done stays, and nothing is done for good
        # before it has succeeded. At worst it is done twice.
        with self._lock:
            while some := self._on_device[:MOST]:
                self._fill(some)
                done = set(map(id, some))
                self._on_device = [one for one in self._on_device if id(one) not in done]
            while self._entries:
                waiting = self._entries[0]
                name, write = waiting
                try:
                    write()
                except Exception as error:
                    self._trouble.report(error, name)
                if self._entries and self._entries[0] is waiting:
                    self._entries.popleft()

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
