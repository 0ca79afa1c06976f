"""The rows of a check within a training: journalled as they come, and written as tables every few seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from msprobe_ms.accuracy.checked import Checked
from msprobe_ms.accuracy.error_data import error_folder
from msprobe_ms.accuracy.execution.journal import Journal
from msprobe_ms.accuracy.execution.runs import PREFIX
from msprobe_ms.accuracy.judging.model import ApiResult, Profile, Status
from msprobe_ms.accuracy.page import write_check_page
from msprobe_ms.accuracy.summary import summary_lines, verdict_line
from msprobe_ms.accuracy.tables import write_tables
from msprobe_ms.dump.dialects import MINDSPORE
from msprobe_ms.remote.spool import Progress
from msprobe_ms.support.errors import MsprobeError
from msprobe_ms.support.log import logger
from msprobe_ms.support.text import one_a_line
from msprobe_ms.support.translation import tr

#: Seconds from one writing of the tables to the next.
_BETWEEN_TABLES = 10.0
NOT_SAMPLED = tr("not sampled")
#: What was judged, in place of a dump.
_WHAT = tr("calls within the training")


class GrowingTable:
    """``results`` by name, in the order in which they came; those of an earlier process of this run first."""

    def __init__(self, folder: Path, timestamp: str, journal: Journal, profile: str) -> None:
        self.timestamp = timestamp
        self.framework = MINDSPORE.name
        self.results = {name: ApiResult.from_json(content) for name, content in journal.done.items()}
        self._folder, self._journal, self._profile = folder, journal, cast(Profile, profile)
        self._written = -_BETWEEN_TABLES
        self._said: set[str] = set()

    def begin(self, otherwise: ApiResult) -> None:
        """A call is about to be judged; ``otherwise`` is its row where this process does not come to its end."""
        self._keep(otherwise)

    def add(self, result: ApiResult) -> None:
        """Keep the row of a call."""
        self._keep(result)
        self.results[result.name] = result

    def _keep(self, result: ApiResult) -> None:
        try:
            self._journal.add(result.name, result.to_json())
        except OSError as error:  # the table has it all the same, at the end
            self._say(
                tr("{path} cannot be written: {strerror}", path=self._journal.path, strerror=error.strerror or error)
            )

    def write_when_due(self, progress: Progress) -> None:
        """Write the tables where the last time is long ago."""
        if time.monotonic() - self._written >= _BETWEEN_TABLES:
            self._write(progress)

    def _write(self, progress: Progress) -> list[Path]:
        rows = [*self.results.values(), *not_sampled(progress)]
        files = list[Path]()
        try:
            files = write_tables(self._folder, self.timestamp, rows, self._profile, self.framework)
        except MsprobeError as error:
            self._say(tr("{error}", error=error))
        self._written = time.monotonic()
        return files

    def complete(self, progress: Progress, *, killed: bool, speaks: bool = True) -> None:
        """Write all that there is, and say what came of it; unless it ``speaks`` only where something is wrong."""
        checked = Checked(list(self.results.values()))
        checked.files = self._write(progress)
        checked.errors = error_folder(self._folder, self.timestamp)
        page = self._folder / f"{PREFIX}report_{self.timestamp}.html"
        try:
            rows = [*checked.results, *not_sampled(progress)]
            write_check_page(page, None, rows, verdict_line(_WHAT, checked))
            checked.files.append(page)
        except MsprobeError as error:
            self._say(tr("{error}", error=error))
        lines = [*summary_lines(_WHAT, checked)]
        lines[1:1] = _coverage(progress, killed=killed)
        if speaks or checked.failed:
            print(one_a_line(lines), file=sys.stderr)

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            logger.warning(tr("check: {text}", text=text))


def not_sampled(progress: Progress) -> Iterator[ApiResult]:
    """Yield a row for each API of which there were calls, in the sampled steps, that were not recorded."""
    for api, (seen, taken) in sorted(progress.calls.items()):
        reason = progress.unchecked.get(api, NOT_SAMPLED)
        if seen > taken:
            text = tr(
                "{reason}: {missed} of its {seen} calls in {sampled} of {steps} steps",
                reason=reason,
                missed=seen - taken,
                seen=seen,
                sampled=progress.sampled,
                steps=progress.steps,
            )
            yield ApiResult(api, Status.SKIP, None, text)


def _coverage(progress: Progress, *, killed: bool) -> Iterator[str]:
    """What the sample is of."""
    seen, taken = (sum(counts[place] for counts in progress.calls.values()) for place in (0, 1))
    at_least = tr("at least ") if killed else ""
    others = "" if progress.sampled == progress.steps else tr("; calls of the other steps were not checked")
    yield (
        tr(
            "  sampled: {taken} of {seen} calls of {count} APIs in {sampled} of {at_least}{steps} steps{others}",
            taken=taken,
            seen=seen,
            count=len(progress.calls),
            sampled=progress.sampled,
            at_least=at_least,
            steps=progress.steps,
            others=others,
        )
    )
    if killed:
        yield tr("  the training was killed")
