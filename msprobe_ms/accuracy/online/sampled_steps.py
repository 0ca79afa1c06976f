"""Which steps are sampled: as many as lets the training take longer by no more than its share."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from statistics import median

#: Steps of a kind whose median is what such a step takes; so many of them alone must have been seen to know anything.
_REMEMBERED, _FEWEST = 32, 8


class _Kind:
    """Steps of one kind: how many there were, and how long the last ones took."""

    def __init__(self) -> None:
        self.count = 0
        self._took: deque[float] = deque(maxlen=_REMEMBERED)

    def add(self, took: float | None) -> None:
        """Count a step; None where its time says nothing."""
        self.count += 1
        if took is not None:
            self._took.append(took)

    def beyond(self, alone: float) -> float:
        """Seconds that one of them takes longer than a step alone; 0 where nothing is known of them."""
        return median(self._took) - alone if self._took else 0.0

    @property
    def typical(self) -> float | None:
        """Seconds that one of them takes; None where too little is known."""
        return median(self._took) if len(self._took) >= _FEWEST else None


class SampledSteps:
    """Measures what sampling costs, by the time from the end of one step to that of the next.

    A step alone is one in which nothing is sampled and nothing judged beside it. What others take longer is spent:
    medians are set against each other, as a step may take long for reasons of its own, and the first one does.
    """

    def __init__(self, share: float, clock: Callable[[], float] = time.perf_counter) -> None:
        """``share`` of the time that the training takes; 1 has every step sampled."""
        self._share = share
        self._clock = clock
        self._began = self._step_began = clock()
        self._alone, self._sampled, self._contended = _Kind(), _Kind(), _Kind()
        self.steps = 0

    @property
    def sampled(self) -> int:
        """Steps that were sampled."""
        return self._sampled.count

    @property
    def spent(self) -> float:
        """Seconds that the training has taken longer, as far as is known."""
        alone = self._alone.typical
        if alone is None:
            return 0.0
        return max(0.0, sum(kind.count * kind.beyond(alone) for kind in (self._sampled, self._contended)))

    def wants(self) -> bool:
        """Whether the step that begins is to be sampled."""
        if self._share >= 1 or not self.sampled:
            return True
        alone = self._alone.typical
        if alone is None:
            return False
        another = max(0.0, self._sampled.beyond(alone))
        return self.spent + another <= self._share * (self._clock() - self._began)

    def end(self, *, sampled: bool, judging: bool) -> None:
        """The step is over; ``judging``: calls were judged meanwhile."""
        now = self._clock()
        took, self._step_began = now - self._step_began, now
        kind = self._sampled if sampled else self._contended if judging else self._alone
        kind.add(took if self.steps else None)
        self.steps += 1
