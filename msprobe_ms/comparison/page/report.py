"""Write the page of a comparison: ``compare_report_{time}.html``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import BinaryIO

from msprobe_ms.comparison.model import Comparison, Origin, Outcome, Pair
from msprobe_ms.comparison.page.calls import Calls
from msprobe_ms.comparison.page.content import Content
from msprobe_ms.comparison.page.pictures import pictures
from msprobe_ms.comparison.page.proofs import asking_html, prove_command
from msprobe_ms.comparison.page.rows import Rows
from msprobe_ms.comparison.page.verdict import provenance, provenance_html, title_of, verdict_html
from msprobe_ms.comparison.reporting.files import writing
from msprobe_ms.comparison.reporting.terminal import call_site
from msprobe_ms.page.template import write_page
from msprobe_ms.support.translation import translated


def write_report(
    outcome: Outcome, folder: Path, timestamp: str, suffix: str = "", *, all_rows: bool = False, stacks: bool = True
) -> Path:
    """Write ``compare_report{suffix}_{timestamp}.html`` into ``folder``.

    ``all_rows``: the figures of all rows, however many; ``stacks``: the places in source code that made the calls.

    :raises UsageError: the folder cannot be written
    """
    path = folder / f"compare_report{suffix}_{timestamp}.html"
    summary = f"compare_summary{suffix}_{timestamp}.json"
    write_report_to(path, outcome, all_rows=all_rows, stacks=stacks, summary=summary)
    return path


def write_report_to(
    path: Path, outcome: Outcome, *, all_rows: bool = False, stacks: bool = True, summary: str = ""
) -> None:
    """Write the page of a comparison to a file; ``summary``: name of the file beside it that the command prove reads.

    :raises UsageError: it cannot be written
    """
    with writing(path) as file:
        write_content(file, outcome, all_rows=all_rows, stacks=stacks, summary=summary)


def write_content(
    file: BinaryIO,
    outcome: Outcome,
    shown: Sequence[Pair] | None = None,
    *,
    all_rows: bool = False,
    stacks: bool = True,
    summary: str = "",
) -> None:
    """Write the page of a comparison; ``shown``: with these pairs alone below the verdict."""
    comparison = outcome.comparison if shown is None else replace(outcome.comparison, pairs=list(shown))
    content = Content(comparison, outcome.target, outcome.golden, all_rows=all_rows, stacks=stacks)
    if drawn := pictures(outcome, content.rows, content.calls):
        content.columns.add_json("pictures", drawn)
    about = provenance(outcome, stacks=stacks)
    index = {
        **content.index,
        "title": translated(title_of(outcome)),
        "verdict": str(comparison.verdict),
        "origins": _origins(comparison, content.rows, content.calls, stacks=stacks),
        "provenance": [tuple(map(translated, each)) for each in about],
        "prove": prove_command(outcome, summary, stacks=stacks),
        "proofs": [],
    }
    header = verdict_html(outcome, asking_html(outcome, summary, stacks=stacks), stacks=stacks)
    write_page(
        file, title=title_of(outcome), header=header,
        provenance=provenance_html(about, stacks=stacks), index=index, columns=content.columns,
    )  # fmt: skip


def _origins(comparison: Comparison, rows: Rows, calls: Calls, *, stacks: bool) -> list[dict[str, object]]:
    # Without stacks no call has a site.
    named = comparison.pairs if stacks else ()
    by_name = {pair.target.name: pair for pair in named if pair.target is not None}
    return [_origin(each, by_name, rows, calls) for each in comparison.origins]


def _origin(origin: Origin, by_name: dict[str, Pair], rows: Rows, calls: Calls) -> dict[str, object]:
    call = calls.find(origin.target, origin.golden)
    return {
        "call": call,
        "row": None if call is None else _row_of(origin, calls.pairs[call], int(rows.starts[call])),
        "kind": str(origin.kind),
        "stage": None if origin.stage is None else str(origin.stage),
        "reason": translated(origin.reason),
        "details": [*map(translated, origin.details)],
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
