"""Write the page of a comparison: ``compare_report_{time}.html``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote

import numpy as np
import numpy.typing as npt

from msprobe_ms.comparison.model import Comparison, Origin, Outcome, Pair
from msprobe_ms.comparison.origin.nodes import error_ratio
from msprobe_ms.comparison.page.calls import Calls
from msprobe_ms.comparison.page.figures import Figures
from msprobe_ms.comparison.page.pictures import pictures
from msprobe_ms.comparison.page.rows import Rows
from msprobe_ms.comparison.page.verdict import provenance, provenance_html, title_of, verdict_html
from msprobe_ms.comparison.reporting.files import writing
from msprobe_ms.comparison.reporting.terminal import call_site
from msprobe_ms.dump.model import Dump
from msprobe_ms.page.columns import Columns
from msprobe_ms.page.template import write_page

#: Rows up to which a page holds the figures of all; of more it holds those that matter (12 MB at most).
_MOST_ROWS = 200_000
#: Rows whose figures a page of more rows holds, and calls around an origin that are among them on each side.
_CHOSEN, _AROUND = 60_000, 200
#: Error ratios that are ranked alike.
_LARGEST = 1e6


def write_report(
    outcome: Outcome, folder: Path, timestamp: str, suffix: str = "", *, all_rows: bool = False, stacks: bool = True
) -> Path:
    """Write ``compare_report{suffix}_{timestamp}.html`` into ``folder``.

    ``all_rows``: the figures of all rows, however many; ``stacks``: the places in source code that made the calls.

    :raises UsageError: the folder cannot be written
    """
    path = folder / f"compare_report{suffix}_{timestamp}.html"
    write_report_to(path, outcome, all_rows=all_rows, stacks=stacks)
    return path


def write_report_to(path: Path, outcome: Outcome, *, all_rows: bool = False, stacks: bool = True) -> None:
    """Write the page of a comparison to a file.

    :raises UsageError: it cannot be written
    """
    comparison = outcome.comparison
    columns = Columns()
    calls = Calls(comparison.pairs, stacks=stacks)
    rows = Rows(comparison.pairs, calls)
    chosen = None if all_rows or len(rows) <= _MOST_ROWS else _chosen(comparison, rows, calls)
    told = None if chosen is None else np.isin(np.arange(len(rows)), chosen)
    calls.add_to(columns, rows.counts)
    tolerated = rows.add_to(columns, told)
    figures = Figures(rows, np.arange(len(rows)) if chosen is None else chosen)
    if chosen is not None:
        columns.add("figure_rows", chosen.astype(np.uint32), delta=True)
    metrics = figures.add_to(columns)
    if drawn := pictures(outcome, rows, calls):
        columns.add_json("pictures", drawn)
    about = provenance(outcome)
    index = {
        "format": 1,
        "kind": "comparison",
        "mode": str(comparison.mode),
        "title": title_of(outcome),
        "verdict": str(comparison.verdict),
        "calls": len(comparison.pairs),
        "rows": len(rows),
        "origins": _origins(comparison, rows, calls),
        "tolerated": tolerated,
        "metrics": metrics,
        "truncated": None if chosen is None else {"rows": len(chosen), "command": "--html-rows all"},
        "sides": [_side(outcome.target), _side(outcome.golden)],
        "provenance": about,
    }
    with writing(path) as file:
        write_page(
            file, title=title_of(outcome), header=verdict_html(outcome), provenance=provenance_html(about),
            index=index, columns=columns,
        )  # fmt: skip


def _chosen(comparison: Comparison, rows: Rows, calls: Calls) -> npt.NDArray[np.intp]:
    """The rows whose figures matter most: around origins, of what modules give out, those furthest apart."""
    starts = np.cumsum([0, *rows.counts])
    rank = np.fromiter((min(error_ratio(row), _LARGEST) for row in rows.rows), float, len(rows))
    rank[[not row.matched for row in rows.rows]] += 2.0
    for call, pair in enumerate(comparison.pairs):
        if pair.target is not None and pair.target.parsed is not None and pair.target.parsed.is_module:
            rank[starts[call] : starts[call + 1]] += [row.state == "output" for row in pair.rows]
    for origin in comparison.origins:
        if (place := calls.find(origin.target, origin.golden)) is not None:
            rank[starts[max(0, place - _AROUND)] : starts[min(len(starts) - 1, place + _AROUND + 1)]] += 2 * _LARGEST
    most = np.argsort(-rank, kind="stable")[:_CHOSEN]
    return np.sort(most)


def _origins(comparison: Comparison, rows: Rows, calls: Calls) -> list[dict[str, object]]:
    by_name = {pair.target.name: pair for pair in comparison.pairs if pair.target is not None}
    return [_origin(each, by_name, rows, calls) for each in comparison.origins]


def _origin(origin: Origin, by_name: dict[str, Pair], rows: Rows, calls: Calls) -> dict[str, object]:
    call = calls.find(origin.target, origin.golden)
    return {
        "call": call,
        "row": None if call is None else _row_of(origin, calls.pairs[call], sum(rows.counts[:call])),
        "kind": str(origin.kind),
        "stage": None if origin.stage is None else str(origin.stage),
        "reason": origin.reason,
        "details": list(origin.details),
        "site": call_site(origin, by_name),
        "command": f"--node {quote(origin.target)}" if origin.target.isprintable() else "",
    }


def _row_of(origin: Origin, pair: Pair, first: int) -> int | None:
    names: Sequence[tuple[str, str]] = [
        (row.target.name if row.target else "", row.golden.name if row.golden else "") for row in pair.rows
    ]
    for place, (target, golden) in enumerate(names):
        if origin.target in (target, "") and origin.golden in (golden, "") and (target or golden):
            return first + place
    return next((first + place for place, (target, _) in enumerate(names) if target == origin.target), None)


def _side(dump: Dump) -> dict[str, str]:
    return {"path": str(dump.path), "framework": dump.framework, "level": dump.level, "task": dump.task}
