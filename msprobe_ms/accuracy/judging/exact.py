"""Results that are compared exactly: integers, elements that are only moved, and where NaN and infinity stand."""

from __future__ import annotations

import math

import numpy as np

from msprobe_ms.accuracy.judging.findings import ALLOWED, EXCESS, ULP, Finding, beside, counted, first, place
from msprobe_ms.accuracy.judging.model import Status
from msprobe_ms.accuracy.judging.ulp import float_format, spacing
from msprobe_ms.arrays.typed import TypedArray, rounded
from msprobe_ms.support.translation import tr

#: Steps of a function may overflow so many times below the largest number, as squares and exponentials in gradients.
_STEPS_OVERFLOW = 4.0


def judge_exact(bench: TypedArray, device: TypedArray, expected: np.ndarray | float | None) -> Finding:
    """Judge results that must be equal, NaN in the same places, once the reference is rounded to the device's dtype."""
    d, b = device.values, bench.values
    if float_format(device.dtype) is not None and not np.iscomplexobj(d) and not np.iscomplexobj(b):
        b = rounded(b, device.dtype).values
    unequal = unequal_elements(b, d)
    if expected is not None and unequal.any():
        unequal &= ~(np.abs(wide(d) - wide(b)) <= explained_errors(expected, d.shape))
    count = int(np.count_nonzero(unequal))
    if not count:
        return Finding(Status.PASS, tr("exact"), "", {ULP: 0.0, ALLOWED: 0.0, EXCESS: 0.0})
    where = first(unequal)
    message = tr(
        "{counted} unequal; first at {place}: {values}",
        counted=counted(count, unequal.size),
        place=place(where),
        values=beside(b, d, where),
    )
    return Finding(Status.ERROR, tr("exact"), message, _exact_figures(b, d, device.dtype))


def _exact_figures(b: np.ndarray, d: np.ndarray, dtype: str) -> dict[str, float | None]:
    format_ = float_format(dtype)
    finite = np.isfinite(wide(b)) & np.isfinite(wide(d))
    if format_ is None or not finite.any():
        return {ULP: None, ALLOWED: 0.0, EXCESS: math.inf}
    errors = np.abs(wide(d)[finite] - wide(b)[finite]) / spacing(wide(b)[finite], format_)
    return {ULP: float(errors.max()), ALLOWED: 0.0, EXCESS: math.inf}


def unequal_elements(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the mask of elements that differ; NaN equals NaN, and integers are compared as such."""
    kinds = {one.dtype.kind, other.dtype.kind}
    if kinds == {"i", "u"}:  # numpy would compare these as floats
        signed, unsigned = (one, other) if one.dtype.kind == "i" else (other, one)
        return (signed < 0) | (signed.astype(np.uint64) != unsigned.astype(np.uint64))
    unequal = np.asarray(one != other)
    if kinds & {"f", "c"}:
        unequal &= ~(np.isnan(one) & np.isnan(other))
    return unequal


def misplaced(b: np.ndarray, d: np.ndarray, explained: np.ndarray | None, largest: float) -> Finding | None:
    """Return the verdict where NaN and infinities do not stand in the same places; None where they do.

    What is infinite beside an element near the ``largest`` number of the dtype is a warning: a step between overflowed.
    """
    same = np.where(np.isfinite(b), np.isfinite(d), (b == d) | (np.isnan(b) & np.isnan(d)))
    wrong = ~same if explained is None else ~same & ~np.isinf(explained)
    count = int(np.count_nonzero(wrong))
    if not count:
        return None
    with np.errstate(all="ignore"):
        overflowed = np.isinf(d) & (np.abs(b) >= largest / _STEPS_OVERFLOW) & (np.sign(b) == np.sign(d))
    near = bool(overflowed[wrong].all())
    where = first(wrong)
    what = tr("infinite, as a step before overflows") if near else tr("with another NaN or infinity")
    message = tr(
        "{counted} {what}; first at {place}: {values}",
        counted=counted(count, wrong.size),
        what=what,
        place=place(where),
        values=beside(b, d, where),
    )
    figures = {ULP: None, ALLOWED: None, EXCESS: math.inf}
    return Finding(Status.WARNING if near else Status.ERROR, tr("NaN and infinity"), message, figures)


def explained_errors(expected: np.ndarray | float | None, shape: tuple[int, ...]) -> np.ndarray:
    """Return the expected errors of all elements; NaN explains nothing."""
    given = np.abs(np.asarray(0.0 if expected is None else expected, dtype=np.float64))
    return np.broadcast_to(np.where(np.isnan(given), 0.0, given), shape)


def wide(values: np.ndarray) -> np.ndarray:
    """Return numbers as float64 or complex128."""
    return np.asarray(values, np.complex128 if np.iscomplexobj(values) else np.float64)
