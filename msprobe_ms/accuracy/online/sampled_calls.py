"""Which calls of a sampled step are recorded: APIs that were judged least come first, then calls judged least.

What a step calls is known from the sampled step before; an API that was not in it is taken as it comes.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial

from msprobe_ms.accuracy.online.settings import MOST_OF_ONE, Budget
from msprobe_ms.accuracy.selection import unchecked_reason

#: Calls of one API in a step that are told apart; of a loop with more, the first ones are sampled.
_MOST_TOLD_APART = 4096


class SampledCalls:
    """The `CallQuota` of a training: bounds by API, by step and by bytes. ``seen`` and ``taken`` count calls by API."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.seen: Counter[str] = Counter()
        self.taken: Counter[str] = Counter()
        #: Calls that could never be judged, by API; and the reason.
        self.unchecked: dict[str, str] = {}
        #: How often each call of an API was taken, by its number in the step.
        self._times: Counter[tuple[str, int]] = Counter()
        self._step = 0
        self._seen_now: Counter[str] = Counter()
        self._taken_now = self._bytes = 0
        self._plan: dict[str, set[int]] = {}
        self._lock = threading.RLock()  # a signal handler may end the recording meanwhile

    def begin_step(self) -> None:
        """Plan the step that begins."""
        before, self._seen_now = self._seen_now, Counter()
        self._taken_now = self._bytes = 0
        self._step += 1
        self._plan = {base: set() for base in before}
        for base, number in self._chosen(before):
            self._plan[base].add(number)

    def takes(self, base: str) -> bool:
        """Count a call that begins; whether it is recorded."""
        with self._lock:
            number = self._seen_now[base]
            self._seen_now[base] += 1
            self.seen[base] += 1
            if base not in self.taken and base not in self.unchecked and (reason := _reason(base)):
                self.unchecked[base] = reason
            if not self._is_wanted(base, number):
                return False
            self._taken_now += 1
            self.taken[base] += 1
            self._times[base, number] += 1
            return True

    def _is_wanted(self, base: str, number: int) -> bool:
        budget = self._budget
        # Gradients are to fit as well, which come when all of forward has.
        full = self._taken_now >= budget.calls_a_step or self._bytes > self._most_bytes // 2
        if full or base in self.unchecked or self.taken[base] >= budget.calls:
            return False
        return number in self._plan[base] if base in self._plan else number < MOST_OF_ONE

    @property
    def _most_bytes(self) -> int:
        """Of one step: another may wait to be judged."""
        return self._budget.disk // 2

    def fits(self, size: int) -> bool:
        """Take room on the disk for a tensor."""
        with self._lock:
            if self._bytes + size > self._most_bytes:
                return False
            self._bytes += size
            return True

    @property
    def most_waiting(self) -> int:
        """Bytes that may wait to be judged when a sampled step begins."""
        return self._budget.disk - self._most_bytes

    def _chosen(self, counts: Counter[str]) -> Iterator[tuple[str, int]]:
        """APIs in turn, those judged least first; of each the call judged least. Equal ones in an order drawn from the
        seed."""
        left = self._budget.calls_a_step
        rounds = {
            base: sorted(range(min(count, _MOST_TOLD_APART)), key=partial(self._order, base))
            for base, count in counts.items()
            if base not in self.unchecked
        }
        bases = sorted(rounds, key=lambda base: (self.taken[base], self._drawn(base)))
        for turn in range(MOST_OF_ONE):
            for base in bases:
                if left and turn < len(rounds[base]) and self.taken[base] + turn < self._budget.calls:
                    left -= 1
                    yield base, rounds[base][turn]

    def _order(self, base: str, number: int) -> tuple[int, int]:
        return self._times[base, number], self._drawn(f"{base}.{number}")

    def _drawn(self, name: str) -> int:
        text = f"{self._budget.seed}\0{self._step}\0{name}".encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def _reason(base: str) -> str:
    """Why no call of an API can be judged; "" where some can."""
    prefix, _, api = base.partition(".")
    return unchecked_reason(prefix, api)
