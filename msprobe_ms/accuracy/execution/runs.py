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
        logger.info("going on with the run of %s: %d calls are done", timestamp, len(journal.done))
        with suppress(OSError):  # the journal says well enough that the time is taken
            journal.path.with_name(f".{PREFIX}{timestamp}.claim").unlink()
        with journal:
            yield journal, timestamp
        return
    with claimed_timestamp(output, PREFIX) as timestamp:
        try:
            journal = Journal(output / f"{PREFIX}{timestamp}{SUFFIX}", key)
        except OSError as error:
            raise UsageError(f"{output}: cannot be written: {error.strerror or error}") from error
        with journal:
            yield journal, timestamp


def _journal_of(table: Path, key: str) -> Journal:
    """The journal of the run that wrote a result table."""
    named = re.fullmatch(rf"{PREFIX}result_(\d{{14}})\.csv", table.name)
    if named is None:
        raise UsageError(f"{table}: accepted is a file accuracy_checking_result_<14 digits>.csv")
    path = table.with_name(f"{PREFIX}{named[1]}{SUFFIX}")
    if not path.exists():
        raise UsageError(
            f"{table}: there is no {path.name} beside it: that run came to its end, or another tool made it; start anew"
        )
    try:
        journal = Journal(path, key)
    except OSError as error:
        raise UsageError(f"{path}: cannot be gone on with: {error.strerror or error}") from error
    if not journal.done:
        logger.warning("%s: was of another dump or other options; all is checked anew", path)
    return journal
