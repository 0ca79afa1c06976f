"""Check one call: run it and its reference, judge each result and each gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msprobe_ms.accuracy.calls import ApiCall
from msprobe_ms.accuracy.error_data import ErrorData
from msprobe_ms.accuracy.execution.sides import Run, Sides, Skip
from msprobe_ms.accuracy.judging.judge import skipped as not_compared
from msprobe_ms.accuracy.judging.model import ApiKey, ApiResult, Judged, Status, api_status
from msprobe_ms.accuracy.judging.reasons import NO_GRADIENT
from msprobe_ms.accuracy.options import Options
from msprobe_ms.accuracy.reference_runs import Data, judge_beside
from msprobe_ms.accuracy.repeated_tensors import beside_whole_gradients
from msprobe_ms.dump.dialects import MINDSPORE
from msprobe_ms.dump.names import BACKWARD, FORWARD
from msprobe_ms.frameworks.api_calls import NotJudged, Value
from msprobe_ms.frameworks.mindspore.known_differences import known_difference
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr

#: Said of a result that is wrong, and another one the second time.
NOT_DETERMINISTIC = tr("not deterministic: a second run gave other figures")


@dataclass(frozen=True, slots=True)
class Task:
    """One call to check. ``error_folder``: where tensors go of a call that does not pass; None: nowhere."""

    call: ApiCall
    options: Options
    error_folder: Path | None = None


def check(task: Task) -> ApiResult:
    """Check a call, forward and, where it was recorded, backward. Never raises for what the call does."""
    call = task.call
    try:
        return _Check(call, task.options).result(task.error_folder)
    except Skip as skip:
        return skipped(call, str(skip))
    except MemoryError:
        return skipped(call, tr("error: MemoryError: not enough memory for its tensors"))


def skipped(call: ApiCall, reason: str) -> ApiResult:
    """Return the result of a call that is not checked."""
    backward = None if call.output_gradients is None else Status.SKIP
    return ApiResult(call.name, None if call.arguments is None else Status.SKIP, backward, reason)


class _Check:
    def __init__(self, call: ApiCall, options: Options) -> None:
        self._call, self._options = call, options
        self._sides = Sides(call, options)
        #: Of the device that the API ran on; "" where that is not known of recorded results.
        self._device_kind = options.device

    def result(self, error_folder: Path | None) -> ApiResult:
        """Check the call. Raises Skip."""
        data = self._sides.data()
        reference, device = self._sides.both(data)
        if self._sides.runs_device:
            self._device_kind = device.how.rpartition(" on ")[2].lower()
        judged = self._judged(data, reference, device)
        wrong = any(row.status is Status.ERROR for row in judged)
        if wrong and self._sides.runs_device:
            judged = self._confirmed(data, reference, judged)
        if error_folder is not None and wrong:
            self._save(error_folder, data, reference, device)
        forward = tuple(row for row in judged if f".{FORWARD}." in row.name)
        backward = tuple(row for row in judged if f".{BACKWARD}." in row.name)
        status, message = None, ""
        if data.gradients is not None:
            status = api_status(backward)
            if status is Status.SKIP:
                told = next((row.message for row in backward if row.message), "")
                message = device.reason or reference.reason or told or NO_GRADIENT
        return ApiResult(self._call.name, api_status(forward), status, message or self._known(judged), judged)

    def _known(self, judged: Sequence[Judged]) -> str:
        """What MindSpore is known to do wrong on the CPU, where this is wrong."""
        wrong = {FORWARD if f".{FORWARD}." in row.name else BACKWARD for row in judged if row.status is Status.ERROR}
        if not wrong or self._device_kind != "cpu" or self._options.framework != MINDSPORE.name:
            return ""
        known = known_difference(self._call.prefix, self._call.api)
        return (
            tr("known of MindSpore on the CPU: {reason}", reason=known.reason)
            if known is not None and known.direction in wrong
            else ""
        )

    def _save(self, folder: Path, data: Data, reference: Run, device: Run) -> None:
        sides = (reference, device)
        try:
            ErrorData(folder, self._call, self._options.framework).save(
                data.arguments,
                data.gradients or (),
                [side.outputs[0] for side in sides],
                [side.gradients[0] if side.gradients else None for side in sides],
            )
        except OSError as error:
            logger.warning(
                tr(
                    "{folder}: tensors of {name} cannot be written: {error}",
                    folder=folder,
                    name=self._call.name,
                    error=error,
                )
            )

    # -- verdict ---------------------------------------------------------------------------------------------------

    def _judged(self, data: Data, reference: Run, device: Run) -> tuple[Judged, ...]:
        rows = self._direction(FORWARD, data, reference.outputs, device.outputs[0], reference.how)
        if data.gradients is not None and reference.gradients is not None and device.gradients is not None:
            runs, gradients = list(reference.gradients), device.gradients[0]
            if not self._sides.runs_device and gradients is not None:
                runs, gradients = beside_whole_gradients(data.arguments, runs, gradients)
            rows += self._direction(BACKWARD, data, runs, gradients, reference.how)
        return rows

    def _direction(
        self,
        direction: str,
        data: Data,
        reference: Sequence[Sequence[Value] | None],
        device: Sequence[Value] | None,
        how: str,
    ) -> tuple[Judged, ...]:
        options, call = self._options, self._call
        first = reference[0]
        if first is None or device is None:
            return ()
        rows = judge_beside(
            reference,
            device,
            data,
            options.thresholds,
            api=ApiKey(options.framework, call.prefix, call.api, direction, self._device_kind),
            entry=f"{call.name}.{direction}",
            profile=options.profile,
            reference=how,
        )
        reasons = self._not_compared(direction, first, device)
        return tuple(
            not_compared(row.name, reasons[number], reference=how) if number in reasons else row
            for number, row in enumerate(rows)
        )

    def _not_compared(self, direction: str, reference: Sequence[Value], device: Sequence[Value]) -> dict[int, str]:
        """Results that are not to be compared, with the reason: left open by the reference, or not asked for when the
        dump was made."""
        reasons = {number: value.reason for number, value in enumerate(reference) if isinstance(value, NotJudged)}
        if direction == BACKWARD and not self._sides.runs_device:
            reasons |= {number: NO_GRADIENT for number, value in enumerate(device) if value is None}
        return reasons

    def _confirmed(self, data: Data, reference: Run, judged: tuple[Judged, ...]) -> tuple[Judged, ...]:
        """Run the API once more: an operator that gives something else each time is another fault."""
        again = self._sides.again(data)
        if again is None:
            return judged
        second = {row.name: row.figures for row in self._judged(data, reference, again)}
        return tuple(
            replace(row, message=tr("{why}; {message}", why=NOT_DETERMINISTIC, message=row.message))
            if row.status is Status.ERROR and second.get(row.name, row.figures) != row.figures
            else row
            for row in judged
        )
