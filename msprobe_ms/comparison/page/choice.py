"""What a page holds of a very large comparison: around the origins, what modules give out, what differs most."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from msprobe_ms.comparison.model import Comparison, Pair
from msprobe_ms.comparison.page.calls import Calls
from msprobe_ms.comparison.page.rows import Rows

#: Rows up to which a page holds the figures of all; of more it holds those of so many (12 MB at most).
_MOST_ROWS, _CHOSEN = 200_000, 60_000
#: Calls around an origin, on each side, that are chosen before anything else.
_AROUND = 200
#: Error ratios from which on rows are ranked alike.
_LARGEST = 1e6
#: Rows of a page in a notebook (300 kB at most).
_FINDINGS = 2_500


def rows_that_matter(comparison: Comparison, rows: Rows, calls: Calls) -> npt.NDArray[np.intp] | None:
    """Return the numbers of the rows whose figures a page holds; None where it holds those of all."""
    if len(rows) <= _MOST_ROWS:
        return None
    return np.sort(np.argsort(-_ranks(comparison, rows, calls), kind="stable")[:_CHOSEN])


def findings(comparison: Comparison) -> Sequence[Pair]:
    """Return the pairs that matter most, as many as a notebook has room for, in their order."""
    calls = Calls(comparison.pairs)
    rows = Rows(comparison, calls)
    if len(rows) <= _FINDINGS:
        return comparison.pairs
    ranks = _ranks(comparison, rows, calls)
    of_calls = [ranks[start:stop].max(initial=0.0) for start, stop in pairwise(rows.starts)]
    order = np.argsort(-np.array(of_calls), kind="stable")
    chosen = np.sort(order[np.cumsum(np.diff(rows.starts)[order]) <= _FINDINGS])
    return [comparison.pairs[call] for call in chosen]


def _ranks(comparison: Comparison, rows: Rows, calls: Calls) -> npt.NDArray[np.float64]:
    """How much each row matters."""
    starts = rows.starts
    ranks = np.minimum(rows.deviations.ratios, _LARGEST)
    target, golden = rows.sides
    ranks[~(target.present & golden.present)] += 2.0
    for call, pair in enumerate(comparison.pairs):
        if pair.target is not None and pair.target.parsed is not None and pair.target.parsed.is_module:
            ranks[starts[call] : starts[call + 1]] += [row.state == "output" for row in pair.rows]
    for origin in comparison.origins:
        if (place := calls.find(origin.target, origin.golden)) is not None:
            first, last = max(0, place - _AROUND), min(len(starts) - 1, place + _AROUND + 1)
            ranks[starts[first] : starts[last]] += 2 * _LARGEST - np.abs(np.arange(first, last) - place).repeat(
                np.diff(starts[first : last + 1])
            )
    return ranks
