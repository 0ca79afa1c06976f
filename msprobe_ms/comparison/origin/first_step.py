"""The first recorded step, paired as a later one is: the same code, before any update."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.model import Pair, Row
from msprobe_ms.comparison.origin.earlier_steps import same_item
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.dump.model import Dump
from msprobe_ms.dump.names import is_update


def evidence_at_first(later: Evidence) -> Evidence | None:
    """Return the pairs of a later step as they were in the first one, measured; None where that is not known."""
    if later.first_step is None:
        return None
    target, golden = later.first_step
    pairs = list(_pairs(later.pairs, target, golden))
    measure(pairs, target, golden, "statistics")
    entries, dumps = list(golden.entries.values()), (target, golden)
    return Evidence(pairs, entries, dumps=dumps, frameworks=later.frameworks)


def _pairs(later: Sequence[Pair], target: Dump, golden: Dump) -> Iterator[Pair]:
    """The same entries with the same items side by side; not updates, which end a step."""
    for pair in later:
        ours = target.entries.get(pair.target.name) if pair.target is not None else None
        theirs = golden.entries.get(pair.golden.name) if pair.golden is not None else None
        if (ours is None and theirs is None) or any(is_update(each.parsed) for each in (ours, theirs) if each):
            continue
        if pair.matched and (ours is None or theirs is None):
            continue
        rows = (
            Row(row.target and same_item(target, row.target), row.golden and same_item(golden, row.golden))
            for row in pair.rows
        )
        yield Pair(ours, theirs, [row for row in rows if row.target or row.golden], pair.how)
