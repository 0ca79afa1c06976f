"""Hold one result against another: the judgement of acc_check, in the words that experiments need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from msprobe_ms.accuracy.calls import argument_leaves
from msprobe_ms.accuracy.data import generator
from msprobe_ms.accuracy.judging.findings import EXCESS, ULP
from msprobe_ms.accuracy.judging.judge import judge_outputs
from msprobe_ms.accuracy.judging.model import ApiKey, Judged, Status
from msprobe_ms.accuracy.judging.thresholds import Thresholds, load_thresholds
from msprobe_ms.accuracy.options import SEED
from msprobe_ms.accuracy.precision import moved, perturbed
from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.operation import CannotRun
from msprobe_ms.arrays.typed import TypedArray, magnitude
from msprobe_ms.dump.names import BACKWARD, FORWARD
from msprobe_ms.frameworks.api_calls import ApiOutcome, NotJudged, Value

#: Times that a reference is run on arguments moved within their last place.
_MOVES = 3


@dataclass(frozen=True, slots=True)
class Trial:
    """One experiment and how it came out.

    ``what``    was run, and beside what
    ``agrees``  None: it could not be run, or there is nothing beside it; ``note`` says why
    ``ulp``     error of the element that is furthest off what is allowed
    ``excess``  that error over what is allowed
    """

    what: str
    agrees: bool | None
    ulp: float | None = None
    excess: float | None = None
    note: str = ""


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
    sides = [(FORWARD, bench.outputs, device)]
    if gradients is not None and bench.gradients:
        sides.append((BACKWARD, bench.gradients, gradients))
    moves = (_near(call, number, with_gradients=len(sides) > 1) for number in range(_MOVES))
    near = [outcome for outcome in moves if outcome is not None]
    rows: list[Judged] = []
    for direction, expected, given in sides:
        judged = _judged(call, direction, expected, given, near)
        rows += judged
    counted = [row for row in rows if row.status is not Status.SKIP]
    if not counted:
        return Trial(what, None, note="nothing to compare")
    worst = max(counted, key=lambda row: (row.status is Status.ERROR, row.figures.get(EXCESS) or 0.0))
    agrees = all(row.status is not Status.ERROR for row in counted)
    note = "" if agrees else f"{worst.name.partition('.')[2]}: {worst.message}"
    return Trial(what, agrees, worst.figures.get(ULP), worst.figures.get(EXCESS), note)


def _judged(
    call: Call, direction: str, bench: Sequence[Value], device: Sequence[Value], near: Sequence[ApiOutcome]
) -> list[Judged]:
    thresholds: Thresholds = load_thresholds()
    tensors = [leaf for leaf in (*argument_leaves(call.arguments), *(call.output_gradients or ()))
               if isinstance(leaf, TypedArray)]  # fmt: skip
    others = [each.outputs if direction == FORWARD else each.gradients for each in near]
    count = min(len(bench), len(device))
    keep = [place for place in range(count) if not isinstance(bench[place], NotJudged) and device[place] is not None]
    operation = call.operation
    rows = judge_outputs(
        ApiKey(operation.framework, operation.prefix, operation.api, direction),
        f"{direction}",
        [bench[place] for place in keep],
        [device[place] for place in keep],
        thresholds,
        elements=max((tensor.values.size for tensor in tensors), default=None),
        magnitude=max(map(magnitude, tensors), default=0.0),
        expected=[_apart(bench[place], [each[place] for each in others if place < len(each)]) for place in keep],
    )
    return list(rows)


def _near(call: Call, repetition: int, *, with_gradients: bool) -> ApiOutcome | None:
    """What the reference gives where arguments, and gradients that arrive, are moved within their last place."""
    arguments = perturbed(call.arguments, SEED + repetition, call.entry)
    gradients = call.output_gradients if with_gradients else None
    if gradients is not None:
        random = generator(SEED, call.entry, "gradients", str(repetition))
        gradients = [
            TypedArray("float64", moved(each, random)) if isinstance(each, TypedArray) else each for each in gradients
        ]
    try:
        return call.operation.in_double(arguments, gradients)
    except CannotRun:
        return None


def _apart(one: Any, others: Sequence[Any]) -> np.ndarray | None:
    """How far each element moves when what goes in is moved within its last place."""
    if not isinstance(one, TypedArray) or one.values.dtype.kind not in "fc":
        return None
    largest = np.zeros(one.values.shape)
    for other in others:
        if isinstance(other, TypedArray) and other.values.shape == one.values.shape:
            with np.errstate(all="ignore"):
                largest = np.maximum(largest, np.nan_to_num(np.abs(one.values - other.values), nan=0.0))
    return 2 * largest  # of a few random moves the largest is below the largest there is by about a half


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
