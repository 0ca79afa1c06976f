"""What a pre-check found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from msprobe_ms.accuracy.judging.model import ApiResult, Status
from msprobe_ms.dump.names import DEBUG, parse_entry
from msprobe_ms.support.translation import tr, tr_beginning


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
    def lacks_calls(self) -> bool:
        """Whether a call was not checked; a saved value is none."""
        return any(
            Status.SKIP in (result.forward, result.backward) and not _is_saved(result.name) for result in self.results
        )

    @property
    def unchecked(self) -> Counter[str]:
        """How many calls were not checked, forward or backward, by reason."""
        return Counter(
            tr_beginning(result.message) or tr("not checked")
            for result in self.results
            if Status.SKIP in (result.forward, result.backward)
        )


def _is_saved(name: str) -> bool:
    parsed = parse_entry(name)
    return parsed is not None and parsed.direction == DEBUG
