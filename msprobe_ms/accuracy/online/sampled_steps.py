"""Which steps are sampled: as many as lets the training take longer by no more than its share."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from statistics import median

#: Steps alone whose median is what a step takes; fewer than the second number of them tell nothing.
_REMEMBERED, _FEWEST = 32, 2


class SampledSteps:
    """Measures what sampling costs, step by step, from the end of one step to that of the next.

    A step alone is one in which nothing is sampled and nothing judged beside it. What others take longer is spent.
    """

    def __init__(self, share: float, clock: Callable[[], float] = time.perf_counter) -> None:
        """``share`` of the time that the training takes; 1 has every step sampled."""
        self._share = share
        self._clock = clock
        self._began = self._step_began = clock()
        self._alone: deque[float] = deque(maxlen=_REMEMBERED)
        #: How many others there were, and how long they took together, since it was last known what steps alone take.
        self._others, self._took = 0, 0.0
        self._spent = self._latest = 0.0
        self.steps = self.sampled = 0

    @property
    def spent(self) -> float:
        """Seconds that the training has taken longer, as far as is known."""
        return self._spent

    def wants(self) -> bool:
        """Whether the step that begins is to be sampled."""
        if self._share >= 1 or not self.sampled:
            return True
        if len(self._alone) < _FEWEST:
            return False
        return self._spent + self._latest <= self._share * (self._clock() - self._began)

    def end(self, *, sampled: bool, judging: bool) -> None:
        """The step is over; ``judging``: calls were judged meanwhile."""
        now = self._clock()
        took, self._step_began = now - self._step_began, now
        self.steps += 1
        self.sampled += sampled
        if not (sampled or judging):
            self._alone.append(took)
        else:
            self._others += 1
            self._took += took
        if len(self._alone) >= _FEWEST:
            self._settle(sampled)

    def _settle(self, sampled: bool) -> None:
        if self._others:
            # One may be shorter than steps alone, as steps differ: only their sum says what they took longer.
            extra = self._took - self._others * median(self._alone)
            self._spent = max(0.0, self._spent + extra)
            if sampled and self.sampled > 1:  # the first is longer whatever is recorded
                self._latest = max(0.0, extra)
            self._others, self._took = 0, 0.0
