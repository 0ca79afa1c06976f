"""When what is known so far is written while a run goes on: the more it is, the less often."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Pace:
    """Says when it is time to write again: after so many seconds, and after twenty times what writing took last.

    So writing all that is known, again and again, takes about a twentieth of a run, however long that is.
    """

    _SHARE = 20.0

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seconds = self._wait = seconds
        self._last = clock()

    @property
    def is_due(self) -> bool:
        return self._clock() - self._last > self._wait

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Measure a writing."""
        began = self._clock()
        yield
        self._last = self._clock()
        self._wait = max(self._seconds, self._SHARE * (self._last - began))
