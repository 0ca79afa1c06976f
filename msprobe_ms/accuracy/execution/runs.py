"""Which run a pre-check is: a new one, with a time of its own, or one that was ended before its time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msprobe_ms.accuracy.execution.journal import SUFFIX, Journal, unfinished_run
from msprobe_ms.comparison.reporting.files import claimed_timestamp
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr

#: What the names of all files of a run begin with.
PREFIX = "accuracy_checking_"


@contextmanager
def opened_journal(output: Path, key: str, resumed: Path | None) -> Iterator[tuple[Journal, str]]:
    """Open the journal of a run, or of one that was ended before its time; with it the time in the names of its tables.

    ``resumed``: the result table of the run to go on with; without one, the latest in ``output`` of this key.

    :raises UsageError: ``output`` cannot be written, or there is no such run
    """
    journal = unfinished_run(output, key) if resumed is None else _journal_of(resumed, key)
    if journal is not None:
        timestamp = journal.path.stem.removeprefix(PREFIX)
        logger.info(
            tr(
                "going on with the run of {timestamp}: {count} calls are done",
                timestamp=timestamp,
                count=len(journal.done),
            )
        )
        with suppress(OSError):  # the journal says well enough that the time is taken
            journal.path.with_name(f".{PREFIX}{timestamp}.claim").unlink()
        with journal:
            yield journal, timestamp
        return
    with claimed_timestamp(output, PREFIX) as timestamp:
        try:
            journal = Journal(output / f"{PREFIX}{timestamp}{SUFFIX}", key)
        except OSError as error:
            raise UsageError(
                tr("{output}: cannot be written: {strerror}", output=output, strerror=error.strerror or error)
            ) from error
        with journal:
            yield journal, timestamp


def _journal_of(table: Path, key: str) -> Journal:
    """The journal of the run that wrote a result table."""
    named = re.fullmatch(rf"{PREFIX}result_(\d{{14}})\.csv", table.name)
    if named is None:
        raise UsageError(tr("{table}: accepted is a file accuracy_checking_result_<14 digits>.csv", table=table))
    path = table.with_name(f"{PREFIX}{named[1]}{SUFFIX}")
    if not path.exists():
        raise UsageError(
            tr(
                "{table}: there is no {name} beside it: that run came to its end, or another tool made it; start anew",
                table=table,
                name=path.name,
            )
        )
    try:
        journal = Journal(path, key)
    except OSError as error:
        raise UsageError(
            tr("{path}: cannot be gone on with: {strerror}", path=path, strerror=error.strerror or error)
        ) from error
    if not journal.done:
        logger.warning(tr("{path}: was of another dump or other options; all is checked anew", path=path))
    return journal
