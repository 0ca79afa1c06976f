"""The process beside a training: judges the samples that lie in the spool, until the training is over and none is left.

``python -m msprobe_ms.accuracy.online.checker SPOOL PARENT JUDGING [REASON]``. PARENT is the training's process;
JUDGING as `Judging.to_json` writes it. With REASON nothing is judged: what is left gets a row that says so.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from msprobe_ms.accuracy.calls import ApiCall, Calls, read_calls
from msprobe_ms.accuracy.error_data import error_folder
from msprobe_ms.accuracy.execution.check import Task, check, skipped
from msprobe_ms.accuracy.execution.runs import opened_journal
from msprobe_ms.accuracy.judging.model import ApiResult, Status
from msprobe_ms.accuracy.judging.reasons import LOST_WITH_WORKER
from msprobe_ms.accuracy.judging.thresholds import load_thresholds
from msprobe_ms.accuracy.online.growing_table import GrowingTable
from msprobe_ms.accuracy.online.settings import Judging
from msprobe_ms.accuracy.options import Options
from msprobe_ms.accuracy.precision import Precision
from msprobe_ms.accuracy.selection import Selection, select
from msprobe_ms.dump.writing.export import export
from msprobe_ms.dump.writing.journal import JOURNAL_NAME
from msprobe_ms.remote.spool import DUMP, Sample, Spool
from msprobe_ms.support.errors import MsprobeError
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr

#: Seconds between two looks at the spool.
_PAUSE = 0.1
#: The training has the processor first.
_NICE = 19
#: Calls whose tensors are kept, and wrong APIs that are named as they are found.
_MOST_SAVED, _MOST_NAMED = 20, 20


class Checker:
    """Judges the samples of one training."""

    def __init__(self, spool: Spool, judging: Judging, table: GrowingTable, reason: str = "") -> None:
        """``reason``: why what is left is not judged any more; "" where it is."""
        self._spool, self._judging, self._table, self._reason = spool, judging, table, reason
        self._options = _options(judging)
        self._errors = error_folder(judging.folder, table.timestamp) if judging.save_errors else None
        self._saved = 0
        self._wrong: set[str] = set()

    def run(self, parent: int) -> None:
        """Judge until the training, process ``parent``, is over and nothing is left; then complete the tables."""
        while True:
            progress = self._spool.progress()
            killed = os.getppid() != parent and not progress.ended
            over = progress.ended or killed or bool(self._reason)
            ready = self._spool.samples() or (self._spool.unfinished() if over else [])
            for sample in ready:
                self._judge(sample, progress.device)
                self._table.write_when_due(self._spool.progress())
            if over and not ready:
                self._table.complete(progress, killed=killed, speaks=self._judging.speaks)
                return
            if not ready:
                time.sleep(_PAUSE)

    def _judge(self, sample: Sample, device: str) -> None:
        """Give each call of a sample its row, then delete it."""
        try:
            calls = self._read(sample)
        except (MsprobeError, OSError) as error:
            self._table.add(
                ApiResult(sample.step, Status.SKIP, None, tr("the sample cannot be read: {error}", error=error))
            )
        else:
            if calls is not None:
                self._judge_calls(sample, calls, device)
        self._spool.remove(sample)

    @staticmethod
    def _read(sample: Sample) -> Calls | None:
        """The calls of a sample; None where the training ended before there was one."""
        if not sample.whole and (sample.folder / JOURNAL_NAME).exists():
            export(sample.folder, recovered=True)
        file = sample.folder / DUMP
        return read_calls(file) if file.exists() else None

    def _judge_calls(self, sample: Sample, calls: Calls, device: str) -> None:
        self._table.framework = calls.framework
        options = replace(
            self._options,
            dump=calls.path,
            framework=calls.framework,
            tensor_folder=calls.tensor_folder,
            device=device,
        )
        reasons = select(calls, Selection()).skipped
        for call in calls.apis.values():
            named = replace(call, name=f"{sample.step}.{call.name}")
            if named.name in self._table.results:  # by a process that died since
                continue
            if reason := self._reason or reasons.get(call.name, ""):
                self._table.add(skipped(named, reason))
                continue
            # Should this process die of the call, it is not tried again.
            self._table.begin(
                skipped(
                    named,
                    tr("{lost}: the process that judges ended in it", lost=LOST_WITH_WORKER),
                )
            )
            saved = self._errors if self._saved < _MOST_SAVED else None
            result = check(Task(named, options, saved))
            self._table.add(result)
            self._tell(call, result)
            self._spool.note_progress()

    def _tell(self, call: ApiCall, result: ApiResult) -> None:
        """Name an API when it is found wrong for the first time."""
        wrong = [row for row in result.details if row.status is Status.ERROR]
        api = f"{call.prefix}.{call.api}"
        self._saved += bool(wrong)
        if wrong and api not in self._wrong and len(self._wrong) < _MOST_NAMED:
            self._wrong.add(api)
            logger.warning(
                tr("check: {name} is wrong: {message}", name=wrong[0].name, message=wrong[0].message or wrong[0].rule)
            )


def _options(judging: Judging) -> Options:
    """What is the same for all samples."""
    return Options(
        dump=Path(),
        framework="",
        recorded=True,
        real_data=True,
        precision=Precision(judging.precision),
        timeout=judging.timeout,
        references=Path(judging.references) if judging.references else None,
        reference_python=judging.reference_python or None,
        thresholds=load_thresholds(Path(judging.thresholds) if judging.thresholds else None),
        profile=judging.profile,  # type: ignore[arg-type]
    )


def main(arguments: Sequence[str]) -> None:
    """Judge what lies in a spool."""
    folder, parent, settings, *reason = arguments
    os.nice(_NICE)
    spool, judging = Spool(Path(folder)), Judging.from_json(settings)
    try:
        with opened_journal(judging.folder, folder, None) as (journal, timestamp):
            table = GrowingTable(judging.folder, timestamp, journal, judging.profile)
            Checker(spool, judging, table, *reason).run(int(parent))
            journal.remove()
    except MsprobeError as error:
        logger.error("check: %s", error)
        sys.exit(2)
    spool.discard()


if __name__ == "__main__":
    main(sys.argv[1:])
