"""Whether an overflow is the operator's: does its reference overflow on the same input, too?"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import numpy as np

from msprobe_ms.accuracy.calls import Calls
from msprobe_ms.accuracy.execution.check import Task
from msprobe_ms.accuracy.execution.in_workers import in_workers
from msprobe_ms.accuracy.execution.sides import Sides, Skip
from msprobe_ms.accuracy.judging.reasons import LOST_WITH_WORKER
from msprobe_ms.accuracy.options import Options
from msprobe_ms.accuracy.selection import Selected
from msprobe_ms.accuracy.tables import write_table
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.typed import TypedArray, rounded
from msprobe_ms.comparison.reporting.files import claimed_timestamp
from msprobe_ms.frameworks.api_calls import Value
from msprobe_ms.support.translation import tr

_TITLES = ("API Name", "Device Overflow", "Reference Overflow", "Verdict", "Message")


class Verdict(Enum):
    """``NORMAL``: a result that is computed right does not fit its dtype either, or was NaN; ``ABNORMAL``: it does."""

    NONE = "no overflow"
    NORMAL = "normal"
    ABNORMAL = "abnormal"
    SKIP = "SKIP"


class Overflow(NamedTuple):
    """What is known of one call. ``device``, ``reference``: elements that are NaN or infinite; None: not run."""

    name: str
    verdict: Verdict
    device: int | None = None
    reference: int | None = None
    message: str = ""


def overflow_of(task: Task) -> Overflow:
    """Run a call and its reference, and count what is NaN or infinite in their results. Never raises for the call."""
    try:
        sides = Sides(task.call, task.options)
        data = sides.data()
        reference, device = sides.both(data._replace(gradients=None))
    except Skip as skip:
        return Overflow(task.call.name, Verdict.SKIP, message=str(skip))
    ours = device.outputs[0] or ()
    theirs = _as_dtypes(reference.outputs[0] or (), ours)
    counts = _not_finite(ours), _not_finite(theirs)
    if not counts[0]:
        return Overflow(task.call.name, Verdict.NONE, *counts)
    return Overflow(task.call.name, Verdict.NORMAL if counts[1] else Verdict.ABNORMAL, *counts)


def _as_dtypes(exact: Sequence[Value], device: Sequence[Value]) -> list[Value]:
    """The reference's results as the device's dtypes hold them: what is too large is infinite."""
    return [
        rounded(bench.values, value.dtype)
        if isinstance(bench, TypedArray) and isinstance(value, TypedArray) and parse_dtype(value.dtype).kind == "float"
        else bench
        for bench, value in zip(exact, device, strict=False)
    ]


def _not_finite(values: Sequence[Value]) -> int:
    arrays = (value.values for value in values if isinstance(value, TypedArray) and value.values.dtype.kind in "fc")
    return sum(int(np.count_nonzero(~np.isfinite(array))) for array in arrays)


def check_overflows(calls: Calls, chosen: Selected, options: Options, output: Path, workers: int) -> list[Overflow]:
    """Say of each call whether it overflows, and whether it should; write a table to ``output``.

    :raises MsprobeError: the folder cannot be written
    """
    tasks = [Task(call, options) for call in chosen.calls]
    found = {result.name: result for result in in_workers(overflow_of, tasks, _lost, workers)}
    rows = [
        found.get(name) or Overflow(name, Verdict.SKIP, message=chosen.skipped.get(name, "")) for name in calls.apis
    ]
    with claimed_timestamp(output, "overflow_checking_") as timestamp:
        cells = ([row.name, _cell(row.device), _cell(row.reference), row.verdict.value, row.message] for row in rows)
        write_table(output / f"overflow_checking_result_{timestamp}.csv", _TITLES, cells)
    return rows


def counted(verdict: Verdict, count: int) -> str:
    """Say of how many calls a verdict is."""
    words = {
        Verdict.NONE: tr("{count} no overflow", count=count),
        Verdict.NORMAL: tr("{count} normal", count=count),
        Verdict.ABNORMAL: tr("{count} abnormal", count=count),
        Verdict.SKIP: tr("{count} SKIP", count=count),
    }
    return words[verdict]


def _cell(count: int | None) -> int | str:
    return "" if count is None else count


def _lost(task: Task, reason: str) -> Overflow:
    return Overflow(task.call.name, Verdict.SKIP, message=LOST_WITH_WORKER)
