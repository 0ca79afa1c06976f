"""What a pre-check found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from msprobe_ms.accuracy.judging.model import ApiResult, Status


@dataclass
class Checked:
    """What a pre-check found.

    ``results``  one for each call, in the order of the dump; then one for each entry that is none
    ``resumed``  results that an earlier run had left
    """

    results: list[ApiResult] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    resumed: int = 0

    @property
    def statuses(self) -> Counter[Status]:
        """How many directions of calls have each status."""
        return Counter(
            status for result in self.results for status in (result.forward, result.backward) if status is not None
        )

    @property
    def failed(self) -> bool:
        """Whether an API is wrong."""
        return self.statuses[Status.ERROR] > 0

    @property
    def unchecked(self) -> Counter[str]:
        """How many calls were not checked, forward or backward, by reason."""
        return Counter(
            result.message.partition(":")[0] or "not checked"
            for result in self.results
            if Status.SKIP in (result.forward, result.backward)
        )
