"""Dumps of many ranks and steps: figures of each node over the steps, and which is the first not finite."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from msprobe_ms.comparison.kernels.first_nonfinite import FirstNonFinite
from msprobe_ms.comparison.many.first_rank import collective_of
from msprobe_ms.comparison.many.page import PairTold, TrendColumns, write_many
from msprobe_ms.comparison.many.trend import Errors, Trend, Trends
from msprobe_ms.comparison.terms import Verdict
from msprobe_ms.dump.model import Dump, Item
from msprobe_ms.dump.reading.locate import Place
from msprobe_ms.support.translation import tr, tr_count, tr_join, tr_list

#: What a node holds and gives out; what comes in is another node's.
_OWN = ("output", "parameters", "parameters_grad", "debug")
#: Figures that a page holds of each rank, as nodes times steps; of more, those of the nodes that change most.
_MOST = 500_000


class ManyDumps:
    """Collects what many dumps hold, on disk, and writes their page: ``with ManyDumps() as many``."""

    def __init__(self) -> None:
        self._norms, self._largest = Trends(), Trends()
        self._told: list[PairTold] = []

    def __enter__(self) -> ManyDumps:
        self._norms.__enter__()
        self._largest.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._norms.__exit__()
        self._largest.__exit__()

    def add(self, place: Place, dump: Dump, answer: FirstNonFinite, page: str) -> None:
        """Add a dump; ``page``: the name of its own."""
        first = answer.first or answer.first_nan or answer.outside
        exchanged = first is not None and collective_of(dump.entries[first.entry])
        self._told.append(
            PairTold(
                place.step, place.rank, "not finite" if answer.entries else "finite",
                origin=f"{first.entry}.{first.item}" if first else "",
                reason=_reason(answer), page=page,
                handed_by=first.entry if first is not None and exchanged else "",
            )
        )  # fmt: skip
        if place.step is not None:
            norms, largest = _figures_of(dump)
            self._norms.add(place.rank, place.step, norms)
            self._largest.add(place.rank, place.step, largest)

    def write(self, path: Path) -> None:
        """Write the page.

        :raises UsageError: it cannot be written
        """
        columns = TrendColumns()
        for norms, largest in zip(self._norms.tables(), self._largest.tables(), strict=True):
            kept = _most_changed(norms)
            figures = {"norm": norms, "largest magnitude": largest}
            columns.add_figures(
                {title: trend._replace(rows=[trend.rows[node] for node in kept]) for title, trend in figures.items()}
            )
        bad = [told for told in self._told if told.verdict != "finite"]
        write_many(path, list(_lines(self._told)), self._told, Verdict.DIVERGENT if bad else Verdict.CONSISTENT,
                   columns, "dumps")  # fmt: skip


def _figures_of(dump: Dump) -> tuple[Errors, Errors]:
    """The norm and the largest magnitude of each tensor that an entry holds or gives out."""
    norms, largest = Errors(), Errors()
    for entry in dump.entries.values():
        for item in entry.items:
            if item.kind == "tensor" and item.state in _OWN and isinstance(item.norm, (int, float)):
                for errors, figure in ((norms, item.norm), (largest, _magnitude(item))):
                    errors.nodes.append(item.name)
                    errors.ratios.append(figure)
    return norms, largest


def _magnitude(item: Item) -> float:
    extremes = [abs(float(each)) for each in (item.maximum, item.minimum) if isinstance(each, (int, float))]
    return math.nan if any(map(math.isnan, extremes)) else max(extremes, default=math.nan)


def _most_changed(trend: Trend) -> list[int]:
    """The places of the rows that a page has room for: all, or those that change most over the steps."""
    most = _MOST // len(trend.steps)
    if len(trend.rows) <= most:
        return list(range(len(trend.rows)))
    changes = np.array([_change([each for each in row if each is not None]) for _, row in trend.rows])
    return sorted(np.argsort(-changes, kind="stable")[:most].tolist())


def _change(figures: list[float]) -> float:
    """How many times the largest of some figures is larger than the smallest; infinite where one is not finite."""
    if not all(map(math.isfinite, figures)):
        return math.inf
    sizes = [abs(figure) for figure in figures if figure]
    return max(sizes) / min(sizes) if sizes else 0.0


def _reason(answer: FirstNonFinite) -> str:
    if not answer.entries:
        return ""
    held = tr_count(
        "{count} of its entries holds what is not finite",
        "{count} of its entries hold what is not finite",
        answer.entries,
    )
    if answer.first is not None:
        return tr(
            "{item} holds {holds}, although the inputs of the call are finite; {held}",
            item=answer.first.item,
            holds=answer.first.holds,
            held=held,
        )
    if answer.outside is not None:
        return tr(
            "no recorded call made the {holds}: look at input data, weights, and code that was not recorded; {held}",
            holds=answer.outside.holds,
            held=held,
        )
    return held


def _lines(told: list[PairTold]) -> Iterator[str]:
    bad = [each for each in told if each.verdict != "finite"]
    steps = sorted({each.step for each in told if each.step is not None})
    over = tr(", steps {steps} to {other_steps}", steps=steps[0], other_steps=steps[-1]) if len(steps) > 1 else ""
    if not bad:
        yield tr("FINITE: every value of {count} dumps{over}", count=len(told), over=over)
        return
    # What a collective gives out first came from another rank.
    first = next((each for each in bad if each.step == bad[0].step and not each.handed_by), bad[0])
    step = "" if first.step is None else tr("step {step}", step=first.step)
    where = tr_join(", ", filter(None, (step, first.rank)))
    yield tr(
        "NaN/infinity: first in {where}{which}",
        where=where,
        which=tr(", at {origin}", origin=first.origin) if first.origin else "",
    )
    counts = Counter(each.rank for each in bad)
    yield tr(
        "{bad} of {dumps} dumps{over} hold what is not finite: ",
        bad=len(bad),
        dumps=len(told),
        over=over + "," if over else "",
    ) + tr_list(f"{rank} {count}" for rank, count in list(counts.items())[:8])
