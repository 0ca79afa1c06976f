"""Write all that is to be known of one comparison: the table, the pairing, advice, the page and the summary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msprobe_ms.comparison.model import Outcome
from msprobe_ms.comparison.pairing.rules.data import write_pairing
from msprobe_ms.comparison.reporting.advisor import write_advice
from msprobe_ms.comparison.reporting.facts import fact_lines
from msprobe_ms.comparison.reporting.files import table_path, write_summary, write_tables
from msprobe_ms.support.forked import beside

if TYPE_CHECKING:
    from msprobe_ms.comparison.run import Options

#: Rows up to which a forked child writes the table: what two processes change of their common memory each has for
#: itself, of a million rows a third.
_MOST_FORKED = 200_000


def write_reports(
    outcome: Outcome,
    options: Options,
    output: Path,
    timestamp: str,
    suffix: str = "",
    *,
    dumps: Mapping[str, Path],
    one_of_many: bool = False,
    forks: bool = False,
) -> Outcome:
    """Write the reports of a comparison, whose names end with ``suffix``; return it with them, the first to open first.

    Its ``files`` are those written so far. ``dumps``: the files of ``target`` and ``golden``. ``one_of_many``: others
    are compared beside it. ``forks``: the process may be forked, so that table and page are written side by side.

    :raises UsageError: ``output`` cannot be written
    """
    comparison, table = outcome.comparison, table_path(output, timestamp, suffix, csv=options.csv)
    write = partial(
        write_tables, comparison, options.report, output, timestamp,
        csv=options.csv, stack=options.stack, name_suffix=suffix,
    )  # fmt: skip
    files = [*outcome.files, table]
    try:
        with beside(write, forks=forks and len(comparison.rows) <= _MOST_FORKED):
            files += write_pairing(comparison.pairs, output, timestamp, suffix)
            # Where nothing was compared there is nothing to advise; 1.1.0 would say that all is well.
            if options.advice and any(row.matched for row in comparison.rows):
                form = options.advice_form
                files.append(write_advice(comparison, output, timestamp, suffix, profile=options.profile, form=form))
            if options.html:
                outcome = replace(outcome, facts=tuple(fact_lines(outcome)))
                files.insert(0, _write_page(outcome, files, options, output, timestamp, suffix, one_of_many))
    except BaseException:
        if not table.exists():  # nothing speaks of it then
            _remove(file for file in files if file not in outcome.files)
        raise
    files.append(write_summary(comparison, output, timestamp, suffix, files=files, dumps=dumps))
    return replace(outcome, files=files)


def _write_page(
    outcome: Outcome,
    files: Sequence[Path],
    options: Options,
    output: Path,
    timestamp: str,
    suffix: str,
    one_of_many: bool,
) -> Path:
    from msprobe_ms.comparison.page.report import write_report  # here, as few comparisons of Python's write it

    # Of several pairs the mappings that were found may yet become one; the page over all of them is written last.
    page = output / f"compare_report_{timestamp}.html"
    told = replace(outcome, files=[*files[len(outcome.files) :], page] if one_of_many else list(files))
    all_rows, stacks = options.html_rows == "all", options.html_stacks
    return write_report(told, output, timestamp, suffix, all_rows=all_rows, stacks=stacks)


def _remove(files: Iterable[Path]) -> None:
    for file in files:
        with suppress(OSError):
            file.unlink(missing_ok=True)
