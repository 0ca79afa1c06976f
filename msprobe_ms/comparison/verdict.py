"""The verdict of a comparison: divergent, incomplete or consistent."""

from __future__ import annotations

from msprobe_ms.comparison.model import Comparison
from msprobe_ms.comparison.pairing.coverage import far_apart, is_incomplete, sides_without_values
from msprobe_ms.comparison.terms import Verdict


def verdict_of(comparison: Comparison) -> Verdict:
    """Judge a comparison: ``divergent``, ``incomplete`` or ``consistent``.

    Divergent where there is an origin of error or nothing has a counterpart; consistent only when nothing differs and
    most was compared, both dumps are whole and end where the other does, no random operation makes the rest differ, and
    trainings have not gone far apart.
    """
    pairs = comparison.pairs
    if comparison.origins:
        return Verdict.DIVERGENT
    if comparison.damage or sides_without_values(pairs):
        return Verdict.INCOMPLETE
    if not any(row.matched for row in comparison.rows):
        return Verdict.DIVERGENT
    if comparison.random or comparison.ends or is_incomplete(pairs) or far_apart(pairs):
        return Verdict.INCOMPLETE
    return Verdict.CONSISTENT
