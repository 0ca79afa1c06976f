"""What a pre-check found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from msprobe_ms.accuracy.error_data import script_name
from msprobe_ms.accuracy.judging.model import ApiResult, Status
from msprobe_ms.accuracy.judging.reasons import was_left_out
from msprobe_ms.dump.names import DEBUG, parse_entry
from msprobe_ms.support.translation import tr, tr_beginning


@dataclass
class Checked:
    """What a pre-check found.

    ``results``  one for each call, in the order of the dump; then one for each entry that is none
    ``resumed``  results that an earlier run had left
    ``errors``   the folder of tensors and scripts of wrong calls; None where they are not kept
    """

    results: list[ApiResult] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    resumed: int = 0
    errors: Path | None = None

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
    def judged(self) -> Counter[str]:
        """How many calls were judged in each direction, and at all: ``forward``, ``backward``, ``calls``."""
        counts = Counter[str]()
        for result in self.results:
            directions = [name for name in ("forward", "backward") if getattr(result, name) not in (None, Status.SKIP)]
            counts.update([*directions, *(["calls"] if directions else [])])
        return counts

    @property
    def without_script(self) -> list[str]:
        """Wrong calls whose tensors are kept, and of which there is no script."""
        wrong = (result.name for result in self.results if Status.ERROR in (result.forward, result.backward))
        return [name for name in wrong if self.errors is not None and not (self.errors / script_name(name)).is_file()]

    @property
    def lacking(self) -> int:
        """How many API calls could not be checked; modules and saved values are none, nor what the user left out."""
        return sum(
            Status.SKIP in (result.forward, result.backward) and _is_call(result) and not was_left_out(result.message)
            for result in self.results
        )

    @property
    def holds_no_calls(self) -> bool:
        """Whether a dump held something, and no API call."""
        return bool(self.results) and not any(map(_is_call, self.results))

    @property
    def unchecked(self) -> Counter[str]:
        """How many entries were not checked, forward or backward, by reason."""
        return Counter(
            tr_beginning(result.message) or tr("not checked")
            for result in self.results
            if Status.SKIP in (result.forward, result.backward)
        )


def _is_call(result: ApiResult) -> bool:
    parsed = parse_entry(result.name)
    return parsed is None or not (parsed.is_module or parsed.direction == DEBUG)
