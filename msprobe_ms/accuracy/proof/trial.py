"""Hold one result against another: the judgement of acc_check, in the words that experiments need."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from msprobe_ms.accuracy.calls import argument_leaves
from msprobe_ms.accuracy.judging.judge import judge_outputs
from msprobe_ms.accuracy.judging.model import ApiKey, Judged, Status
from msprobe_ms.accuracy.judging.own_rules import EXCESS, ULP
from msprobe_ms.accuracy.judging.thresholds import Thresholds, load_thresholds
from msprobe_ms.accuracy.options import SEED
from msprobe_ms.accuracy.precision import perturbed
from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.operation import CannotRun
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.dump.names import BACKWARD, FORWARD
from msprobe_ms.frameworks.api_calls import ApiOutcome, NotJudged, Value


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
    *,
    rounding: bool = True,
) -> Trial:
    """Judge ``device``, and ``gradients`` beside it, by the results of a reference.

    ``rounding``: error that rounding of the arguments explains is allowed.
    """
    sides = [(FORWARD, bench.outputs, device)]
    if gradients is not None and bench.gradients:
        sides.append((BACKWARD, bench.gradients, gradients))
    near = _near(call, with_gradients=len(sides) > 1) if rounding else None
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
    call: Call, direction: str, bench: Sequence[Value], device: Sequence[Value], near: ApiOutcome | None
) -> list[Judged]:
    thresholds: Thresholds = load_thresholds()
    tensors = [leaf for leaf in (*argument_leaves(call.arguments), *(call.output_gradients or ()))
               if isinstance(leaf, TypedArray)]  # fmt: skip
    moved = () if near is None else near.outputs if direction == FORWARD else near.gradients
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
        magnitude=max(map(_magnitude, tensors), default=0.0),
        expected=[_apart(bench[place], moved[place] if place < len(moved) else None) for place in keep],
    )
    return list(rows)


def _near(call: Call, *, with_gradients: bool) -> ApiOutcome | None:
    """What the reference gives where the arguments are moved within their last place."""
    moved = perturbed(call.arguments, SEED, call.entry, 0)
    try:
        return call.operation.in_double(moved, call.output_gradients if with_gradients else None)
    except CannotRun:
        return None


def _apart(one: Any, other: Any) -> np.ndarray | None:
    if not (isinstance(one, TypedArray) and isinstance(other, TypedArray)):
        return None
    if one.values.dtype.kind not in "fc" or one.values.shape != other.values.shape:
        return None
    with np.errstate(all="ignore"):
        # One random move is below the largest by about a half.
        return 2 * np.nan_to_num(np.abs(one.values - other.values), nan=0.0)


def _magnitude(tensor: TypedArray) -> float:
    values = np.abs(tensor.values) if tensor.values.dtype.kind in "fiuc" else np.zeros(0)
    return float(np.max(values, initial=0.0, where=np.isfinite(values)))


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
