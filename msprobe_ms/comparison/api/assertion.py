"""Assert that two dumps are consistent; the message reads as that of ``torch.testing.assert_close``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from msprobe_ms.comparison.api.compare import compare
from msprobe_ms.comparison.api.compared import Compared, ComparedRanks
from msprobe_ms.comparison.model import Comparison, Origin, Row
from msprobe_ms.comparison.terms import Verdict
from msprobe_ms.support.text import one_a_line


def assert_consistent(target: Any, golden: Any, *, allow_incomplete: bool = False, **settings: Any) -> None:
    """Compare two dumps as ``msprobe_ms.compare`` does, with the same ``settings``; for tests.

    Raises AssertionError where they diverge, and, unless ``allow_incomplete``, where most has no twin to compare with
    or a rank could not be compared. Raises MsprobeError: what cannot be read or paired.
    """
    __tracebackhide__ = True
    result = compare(target, golden, **settings)
    accepted = (Verdict.CONSISTENT, Verdict.INCOMPLETE) if allow_incomplete else (Verdict.CONSISTENT,)
    if result.verdict not in accepted:
        told = _of_ranks(result) if isinstance(result, ComparedRanks) else _of_one(result)
        raise AssertionError(one_a_line(told))


def _of_one(result: Compared) -> Iterator[str]:
    if not result.origins:
        yield "Dumps are not consistent: too little of them could be compared!"
        yield ""
        yield str(result)
        return
    yield "Dumps are not consistent!"
    yield ""
    yield from _mismatches(result.comparison)
    yield ""
    yield from _beginning(result.origins[0])
    if len(result.origins) > 1:
        yield f"Perhaps also at {', '.join(origin.target for origin in result.origins[1:4])}."


def _of_ranks(result: ComparedRanks) -> Iterator[str]:
    wrong = sum(found.verdict != Verdict.CONSISTENT for found in result.found)
    yield f"Dumps are not consistent, in {wrong} of {len(result.found)} pairs!"
    yield ""
    if result.first is not None:
        first = result[result.first]
        yield from _mismatches(first.comparison)
        yield ""
        if first.origins:
            yield from _beginning(first.origins[0])
            yield ""
    yield str(result)


def _beginning(origin: Origin) -> Iterator[str]:
    yield f"The error begins at {origin.target} (golden: {origin.golden}):"
    yield f"{origin.reason}."


def _mismatches(comparison: Comparison) -> Iterator[str]:
    total = differing = 0
    greatest: Row | None = None
    for row in comparison.rows:
        total += row.deviation is not None
        if row.differs:
            differing += 1
            if greatest is None or (row.deviation or 0.0) > (greatest.deviation or 0.0):
                greatest = row
    share = f" ({100 * differing / total:.1f}%)" if total else ""
    yield f"Mismatched rows: {differing} / {total}{share}"
    if greatest is not None and greatest.target is not None:
        deviation = greatest.deviation or 0.0
        shown = f"{deviation:.6g}" if math.isfinite(deviation) else "beyond measure"
        yield f"Greatest relative deviation: {shown} at {greatest.target.name} (up to {greatest.held_to:.3g} allowed)"
