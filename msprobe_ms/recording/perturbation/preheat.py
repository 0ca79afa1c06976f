"""Preheating: in the first steps a sample of the calls is compared with the CPU, and thresholds follow from it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

#: Where thresholds begin, as a relative change, and the factor of each adaptation: those of msprobe.
_FIRST, _FACTOR = 1.05, 2.0


class Preheat:
    """Step 0 counts calls; later steps up to ``steps`` compare some of them with the CPU."""

    def __init__(self, steps: int, most: int) -> None:
        """``most`` calls of an API in a step are compared."""
        self._steps, self._most = steps, most
        self._calls: Counter[str] = Counter()
        self._seen: Counter[str] = Counter()
        self._thresholds: dict[tuple[str, str], float] = {}
        #: (API, dtype) → the largest change of a result of this step that the CPU agrees with; 0 where there is none.
        self._healthy: defaultdict[tuple[str, str], float] = defaultdict(float)
        self._step = 0

    @property
    def goes_on(self) -> bool:
        """Whether the present step is one of those that only compare with the CPU."""
        return self._step <= self._steps

    def takes(self, api: str) -> bool:
        """Count a call; whether it is compared."""
        number = self._seen[api]
        self._seen[api] += 1
        if not self.goes_on:
            return True
        if self._step == 0:
            self._calls[api] += 1
            return False
        calls = max(self._calls[api], number + 1)
        wanted = min(math.ceil(calls / self._steps), self._most)
        # Another part of the calls in every step.
        first = (self._step - 1) * wanted % calls
        return (number - first) % calls < wanted

    def healthy(self, api: str, dtype: str, size: float) -> None:
        """Note the change of a result that the CPU agrees with."""
        if math.isfinite(size):
            self._healthy[api, dtype] = max(self._healthy[api, dtype], size)

    def threshold(self, api: str, dtype: str, least: float) -> float:
        """Return the largest change that is none, never below ``least``."""
        return max(self._thresholds.get((api, dtype), _FIRST), least)

    def end_step(self) -> None:
        """Adapt the thresholds by what the step has shown."""
        for key, size in self._healthy.items():
            present = self._thresholds.get(key, _FIRST)
            self._thresholds[key] = present * _FACTOR if size > present else max(present / _FACTOR, size)
        self._healthy.clear()
        self._seen.clear()
        self._step += 1
