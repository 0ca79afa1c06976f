"""Tell what was found: rows, counts, and the log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

from msprobe_ms.dump.dialects import MINDSPORE, MINDTORCH
from msprobe_ms.frameworks.base import Framework
from msprobe_ms.recording.perturbation.files import RowFile, Summary
from msprobe_ms.recording.perturbation.judging import Finding
from msprobe_ms.support.interruptions import interrupts
from msprobe_ms.support.log import logger
from msprobe_ms.support.text import listed, printable
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    from msprobe_ms.config import Config

#: APIs that are named in the log as they are found; all are in the table.
_MOST_NAMED = 20
#: Different errors of one API that are counted apart, and characters of one.
_MOST_ERRORS, _LONGEST_ERROR = 10, 100
#: Innermost frames that a row names.
_MOST_FRAMES = 3


class Report:
    """What one debugger found, in all its steps."""

    def __init__(self, config: Config, framework: Framework) -> None:
        self._config, self._framework = config, framework
        title = "pert_type" if framework.dialect in (MINDSPORE, MINDTORCH) else "pert_mode"
        self._rows = RowFile(config.dump_path, title, config.permissions)
        self.summary = Summary()
        self._named: set[str] = set()
        self._failed: set[str] = set()
        #: Whether the disk took a row that was to be written; said once.
        self._unwritten = False

    def found(
        self,
        api: str,
        call: str,
        finding: Finding,
        *,
        step: int,
        rank: int | None,
        tensor: Any,
        index: int | None,
        site: Sequence[tuple[CodeType, int]],
        stage: str,
        mode: str,
    ) -> None:
        """Write a row, and name the API where it is the first one of it."""
        if api not in self._named and len(self._named) < _MOST_NAMED:
            self._named.add(api)
            finite = finding.size != float("inf")
            size = tr(", {size:.3g} of its largest element", size=finding.size) if finite else ""
            logger.warning(
                tr(
                    "free_benchmark: {api}: {call} under {mode}: {kind}{size}",
                    api=api,
                    call=call,
                    mode=mode,
                    kind=finding.kind,
                    size=size,
                )
            )
        if not self.summary.takes_row(api):
            return
        dtype, shape = self._framework.dtype_text(tensor), str(tuple(tensor.shape))
        standard = (rank, mode, stage, step, api, finding.size, dtype, shape, index)
        own = (call, finding.kind, finding.condition, finding.changed, finding.elements, site_text(site))
        try:
            self._rows.add((*standard, *own))
        except OSError as error:
            if interrupts(error):
                raise
            if not self._unwritten:
                self._unwritten = True
                logger.warning(tr("free_benchmark: rows cannot be written: {error}; training goes on", error=error))

    def failed(self, api: str, error: Exception) -> None:
        """Count a check that an error ended, and say it once for each API. Raises what must arrive at the script."""
        if interrupts(error):
            raise error
        text = printable(" ".join(str(error).split("\n", 1)[0].split()))[:_LONGEST_ERROR]
        reason = f"{type(error).__name__}: {text}"
        left_out = self.summary.of(api).left_out
        left_out[reason if reason in left_out or len(left_out) < _MOST_ERRORS else "other errors"] += 1
        if api not in self._failed:
            self._failed.add(api)
            logger.warning(
                tr("free_benchmark: {api} could not be checked: {reason}. Training goes on", api=api, reason=reason)
            )

    def write_summary(self, rank: int | None) -> None:
        """Bring the summary up to date. Raises OSError."""
        config = self._config
        self.summary.write(config.dump_path, rank, config.pert_mode, config.fuzz_stage, config.permissions)

    def end(self) -> None:
        """Say what came of it all."""
        calls, checked, wrong = self.summary.totals
        if not calls:
            return
        where: Path = self._config.dump_path
        if not checked:
            logger.warning(
                tr(
                    "{where}: none of {calls} calls was checked; free_benchmark_summary.csv says why. "
                    "pert_mode {mode} may suit these tensors better",
                    where=where,
                    calls=calls,
                    mode="add_noise" if self._config.pert_mode != "add_noise" else "to_cpu",
                )
            )
            return
        named = tr(", {calls}", calls=listed(self.summary.inconsistent, 5)) if wrong else ""
        logger.info(
            tr(
                "{where}: {checked} of {calls} calls were replaced, {wrong} are inconsistent{named}",
                where=where,
                checked=checked,
                calls=calls,
                wrong=wrong,
                named=named,
            )
            if self._config.handler_type == "fix"
            else tr(
                "{where}: {checked} of {calls} calls were checked, {wrong} are inconsistent{named}",
                where=where,
                checked=checked,
                calls=calls,
                wrong=wrong,
                named=named,
            )
        )


def site_text(frames: Sequence[tuple[CodeType, int]]) -> str:
    """Return where a call was made: files and lines, the innermost first."""
    places = [f"{code.co_filename}:{line} in {code.co_name}" for code, line in frames[:_MOST_FRAMES]]
    return " < ".join(places)
