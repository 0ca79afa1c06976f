"""Hold one result against another: the judgement of acc_check, in the words that experiments need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from msprobe_ms.accuracy.judging.findings import EXCESS, ULP
from msprobe_ms.accuracy.judging.model import ApiKey, Judged, Status
from msprobe_ms.accuracy.judging.thresholds import load_thresholds
from msprobe_ms.accuracy.options import SEED
from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.operation import CannotRun
from msprobe_ms.accuracy.reference_runs import Data, judge_beside, nearby
from msprobe_ms.accuracy.repeated_tensors import beside_whole_gradients
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.dump.names import BACKWARD, FORWARD
from msprobe_ms.frameworks.api_calls import ApiOutcome, NotJudged, Value
from msprobe_ms.support.translation import tr


class Place(NamedTuple):
    """A result, or a gradient (``direction`` is backward), by its number."""

    direction: str
    number: int


@dataclass(frozen=True, slots=True)
class Trial:
    """One experiment and how it came out.

    ``what``    was run, and beside what
    ``agrees``  None: it could not be run, or there is nothing beside it; ``note`` says why
    ``ulp``     error of the element that is furthest off what is allowed
    ``excess``  that error over what is allowed
    ``worst``   which result that element is in
    ``explains``  a difference is replaced to see whether it sets the two sides apart as much as recorded
    """

    what: str
    agrees: bool | None
    ulp: float | None = None
    excess: float | None = None
    note: str = ""
    worst: Place | None = None
    explains: bool = False


def held_against(
    what: str,
    call: Call,
    bench: ApiOutcome,
    device: Sequence[Value],
    gradients: Sequence[Value] | None = None,
) -> Trial:
    """Judge ``device``, and ``gradients`` beside it, by the results of a reference.

    What rounding of the arguments explains is allowed.
    """
    has_gradients = gradients is not None and bool(bench.gradients)
    data = Data(call.arguments, call.output_gradients if has_gradients else None)
    near = [outcome for each in nearby(data, SEED, call.entry) if (outcome := _outcome(call, each)) is not None]
    rows = _rows(call, FORWARD, data, [each.outputs for each in (bench, *near)], device)
    if gradients is not None and has_gradients:
        runs, gradients = beside_whole_gradients(call.arguments, [each.gradients for each in (bench, *near)], gradients)
        rows += _rows(call, BACKWARD, data, [run for run in runs if run is not None], gradients)
    counted = [(place, row) for place, row in rows if row.status is not Status.SKIP]
    if not counted:
        return Trial(what, None, note=tr("nothing to compare"))
    place, worst = max(counted, key=lambda each: (each[1].status is Status.ERROR, each[1].figures.get(EXCESS) or 0.0))
    agrees = worst.status is not Status.ERROR
    note = "" if agrees else tr("{name}: {message}", name=worst.name, message=worst.message)
    return Trial(what, agrees, worst.figures.get(ULP), worst.figures.get(EXCESS), note, place)


def _outcome(call: Call, data: Data) -> ApiOutcome | None:
    try:
        return call.operation.in_double(data.arguments, data.gradients)
    except CannotRun:
        return None


def _rows(
    call: Call, direction: str, data: Data, runs: Sequence[Sequence[Value]], device: Sequence[Value]
) -> list[tuple[Place, Judged]]:
    """The results that both have, judged; ``runs`` are the reference's, on the data and nearby."""
    first = runs[0]
    keep = [
        number
        for number in range(min(len(first), len(device)))
        if not isinstance(first[number], NotJudged) and device[number] is not None
    ]
    operation = call.operation
    rows = judge_beside(
        [[run[number] if number < len(run) else None for number in keep] for run in runs],
        [device[number] for number in keep],
        data,
        load_thresholds(),
        api=ApiKey(operation.framework, operation.prefix, operation.api, direction),
        entry=direction,
    )
    names = (f"{direction}.output.{number}" for number in keep)
    return [
        (Place(direction, number), replace(row, name=name)) for number, row, name in zip(keep, rows, names, strict=True)
    ]


def relative_error(bench: Sequence[Value], device: Sequence[Value]) -> float:
    """Return the largest ‖device − bench‖ / ‖device‖ of the tensors; infinite where shapes differ."""
    worst = 0.0
    for one, other in zip(bench, device, strict=False):
        if not (isinstance(one, TypedArray) and isinstance(other, TypedArray)):
            continue
        if one.values.shape != other.values.shape:
            return math.inf
        with np.errstate(all="ignore"):
            apart = np.linalg.norm((one.values.astype(np.float64) - other.values.astype(np.float64)).ravel())
            size = np.linalg.norm(other.values.astype(np.float64).ravel())
        share = float(apart / size) if size else float(apart)
        worst = max(worst, math.inf if math.isnan(share) else share)
    return worst
