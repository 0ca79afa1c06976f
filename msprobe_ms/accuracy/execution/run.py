"""Check all calls of a dump: select, go on where an earlier run was ended, check in workers, write the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from msprobe_ms.accuracy.calls import Calls
from msprobe_ms.accuracy.checked import Checked
from msprobe_ms.accuracy.error_data import error_folder
from msprobe_ms.accuracy.execution.check import Task, check, skipped
from msprobe_ms.accuracy.execution.in_workers import in_workers
from msprobe_ms.accuracy.execution.journal import run_key
from msprobe_ms.accuracy.execution.pace import Pace
from msprobe_ms.accuracy.execution.runs import PREFIX, opened_journal
from msprobe_ms.accuracy.judging.model import ApiResult, Status
from msprobe_ms.accuracy.judging.reasons import LOST_WITH_WORKER
from msprobe_ms.accuracy.options import Options
from msprobe_ms.accuracy.page import write_check_page
from msprobe_ms.accuracy.selection import Selection, select
from msprobe_ms.accuracy.summary import verdict_line
from msprobe_ms.accuracy.tables import write_tables
from msprobe_ms.support.translation import tr
from msprobe_ms.support.workers import Pool

#: Seconds from one writing of the tables to the next, at least.
_BETWEEN_TABLES = 10.0


def check_calls(
    calls: Calls,
    options: Options,
    selection: Selection,
    output: Path,
    *,
    workers: int = 1,
    pool: Pool | None = None,
    resumed: Path | None = None,
    page: bool = True,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Checked:
    """Check the calls of a dump and write both tables to ``output``: as it goes what is known, at the end all.

    ``pool``: where calls are checked; without one, that many ``workers`` of this machine. ``resumed``: the result table
    of the run to go on with; without one, the latest in ``output`` of the same dump and options, if it was ended.
    ``page``: write the page to look at as well. ``progress`` is told how many calls are done, of how many.

    :raises MsprobeError: the dump or the output folder cannot be used, or there is no such run
    """
    chosen = select(calls, selection)
    checked = Checked()
    with opened_journal(output, run_key(options.dump, _telling(options, selection)), resumed) as (journal, timestamp):
        done = {name: ApiResult.from_json(content) for name, content in journal.done.items()}
        checked.resumed = len(done)
        errors = error_folder(journal.path.parent, timestamp) if options.save_errors else None
        checked.errors = errors
        waiting = [Task(call, options, errors) for call in chosen.calls if call.name not in done]
        progress(len(done), len(chosen.calls))

        def write(results: Sequence[ApiResult]) -> list[Path]:
            return write_tables(journal.path.parent, timestamp, results, options.profile, options.framework)

        pace = Pace(_BETWEEN_TABLES)
        for result in in_workers(check, waiting, _lost, workers, pool):
            done[result.name] = result
            journal.add(result.name, result.to_json())
            progress(len(done), len(chosen.calls))
            if pace.is_due:
                with pace.writing():
                    write([done[call.name] for call in chosen.calls if call.name in done])
        checked.results = list(_in_order(calls, chosen.skipped, done))
        checked.files = write(checked.results)
        if page:
            file = journal.path.with_name(f"{PREFIX}report_{timestamp}.html")
            write_check_page(file, calls.path, checked.results, verdict_line(calls.path, checked))
            checked.files.append(file)
        journal.remove()
    return checked


def _lost(task: Task, reason: str) -> ApiResult:
    return skipped(task.call, tr("{lost}: {reason}", lost=LOST_WITH_WORKER, reason=reason))


def _in_order(calls: Calls, reasons: Mapping[str, str], done: Mapping[str, ApiResult]) -> Iterator[ApiResult]:
    """One result for each call and each other entry of the dump."""
    for name, call in calls.apis.items():
        yield done[name] if name in done and name not in reasons else skipped(call, reasons.get(name, LOST_WITH_WORKER))
    for name, what in calls.others.items():
        yield ApiResult(name, Status.SKIP, None, what)


def _telling(options: Options, selection: Selection) -> dict[str, Any]:
    """The options that change results."""
    told: dict[str, Any] = asdict(options)
    return told | {key: sorted(value) if isinstance(value, frozenset) else value
                   for key, value in asdict(selection).items()}  # fmt: skip
