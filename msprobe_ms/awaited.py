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

#: Tensors, or entries, that one read-back is for at most; and the seconds that an entry waits for others at most.
MOST, LONGEST = 1024, 1.0


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
        self._on_device: list[tuple[Any, tuple[AwaitedFigure, ...]]] = []
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
        if not self._on_device and not self._entries:
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

    def fetch(self) -> None:
        """Read back what is on the device and record what waited for it. Does not raise."""
        with self._lock:
            on_device, self._on_device = self._on_device, []
            if on_device:
                try:
                    found = self._read([figures for figures, _ in on_device])
                    for (_, awaited), figures in zip(on_device, found, strict=True):
                        for one, value in zip(awaited, figures, strict=True):
                            one.value = value
                except Exception as error:  # entries without figures still say what was called
                    self._trouble.report(error, f"figures of {len(on_device)} tensors on the device")
            while self._entries:
                name, write = self._entries.popleft()
                try:
                    write()
                except Exception as error:
                    self._trouble.report(error, name)
