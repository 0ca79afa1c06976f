"""Our own judgement: an element's error in ULP of its dtype, beside what a correct computation may be off by.

    allowed = roundings · (ulp(b) + ulp_of_the_reference(b) + expected)
    roundings = (operation + growth · √terms) · what the user allows the API

``b`` is the element of the reference, or, where steps between may cancel, no less than the root mean square of all of
them. A sum of n terms that are rounded one by one is off by about √n ULP (Higham, Accuracy and Stability of Numerical
Algorithms, 2nd ed., § 2.8). ``expected`` is by how much the reference itself moves when its inputs are rounded, and of
what is summed no less than is usual among all elements: a draw may leave a single sum where it was.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from msprobe_ms.accuracy.judging.exact import explained_errors, judge_exact, misplaced, wide
from msprobe_ms.accuracy.judging.findings import ALLOWED, EXCESS, ULP, Finding, beside, counted, place, place_of
from msprobe_ms.accuracy.judging.kinds import Kind, kind_of, kind_word, plain_name, terms
from msprobe_ms.accuracy.judging.known_errors import known_error
from msprobe_ms.accuracy.judging.model import ApiKey, Status
from msprobe_ms.accuracy.judging.thresholds import Thresholds
from msprobe_ms.accuracy.judging.ulp import FloatFormat, float_format, real_dtype, spacing
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.typed import TypedArray, rounded
from msprobe_ms.support.translation import tr

#: With so many more bits a reference is exact.
_EXACT_BITS = 20

#: The median of the absolute values of a normal distribution, in standard deviations.
_MEDIAN_OF_NORMAL = 0.6745

#: Dtypes whose smallest numbers many devices take for zero.
_FLUSHED = frozenset({"float64", "float32", "bfloat16", "complex64", "complex128"})


class Size(NamedTuple):
    """What is known of a call: elements of the largest tensor that goes in, and the largest absolute value in one."""

    elements: int | None = None
    magnitude: float = 0.0


def judge_own(
    api: ApiKey,
    bench: TypedArray,
    device: TypedArray,
    thresholds: Thresholds,
    *,
    size: Size = Size(),  # noqa: B008  a constant
    expected: np.ndarray | float | None = None,
) -> Finding:
    """Judge an output of the reference's shape.

    ``expected``: error that rounding of the inputs alone explains, for each element or for all; infinite where it
    explains anything.
    """
    kind = kind_of(api)
    format_ = float_format(device.dtype)
    if format_ is None or kind is Kind.EXACT:
        bench = bench if format_ is None else _with_limits_of(bench, device, format_)
        return judge_exact(bench, device, None if kind is Kind.EXACT else expected)
    if not device.values.size:
        return Finding(Status.PASS, tr("no elements"), "", {ULP: 0.0, ALLOWED: 0.0, EXCESS: 0.0})
    bench = _with_limits_of(bench, device, format_)
    explained = None if expected is None else explained_errors(expected, bench.values.shape)
    bench = TypedArray(bench.dtype, rounded_range(bench, device.dtype))
    b, d = wide(bench.values), wide(device.values)
    finite = np.isfinite(b) & np.isfinite(d)
    elsewhere = None if finite.all() else misplaced(b, d, explained, format_.largest)
    if elsewhere is not None and elsewhere.status is Status.ERROR:
        return elsewhere
    scales = _Scales(np.where(finite, np.abs(b), 0.0), finite, explained)
    found = _rounding(api, kind, bench, device, thresholds, size, scales)
    return elsewhere if elsewhere is not None and found.status is not Status.ERROR else found


class _Scales(NamedTuple):
    """Of each element: its size in the reference, whether it is finite on both sides, what explains an error of it."""

    magnitudes: np.ndarray
    finite: np.ndarray
    explained: np.ndarray | None


def rounded_range(bench: TypedArray, dtype: str) -> np.ndarray:
    """Return the reference with what ``dtype`` cannot hold as a device gives it: infinite, or the largest number."""
    values = bench.values
    if np.iscomplexobj(values):
        parts = [rounded_range(TypedArray("float64", part), dtype) for part in (values.real, values.imag)]
        return parts[0] + 1j * parts[1]
    format_ = float_format(dtype)
    largest = np.max(np.abs(values), initial=0.0)
    if format_ is not None and largest <= format_.largest:  # not so where it is NaN
        return values
    near = rounded(values, real_dtype(dtype)).values
    return values if format_ is None else np.where(np.abs(values) > format_.largest, near, values)


def _with_limits_of(bench: TypedArray, device: TypedArray, format_: FloatFormat) -> TypedArray:
    """The reference with the largest number of its dtype, which may stand for "none is larger", as the device's."""
    own = float_format(bench.dtype)
    if own is None or own == format_ or np.iscomplexobj(bench.values):
        return bench
    limits = (np.abs(bench.values) == own.largest) & (np.abs(device.values) == format_.largest)
    if not limits.any():
        return bench
    return TypedArray(bench.dtype, np.where(limits, np.copysign(format_.largest, bench.values), bench.values))


def _rounding(
    api: ApiKey,
    kind: Kind,
    bench: TypedArray,
    device: TypedArray,
    thresholds: Thresholds,
    size: Size,
    scales: _Scales,
) -> Finding:
    b, d, format_ = wide(bench.values), wide(device.values), float_format(device.dtype)
    assert format_ is not None
    roundings, rule = _roundings(api, kind, device, thresholds, size)
    floor = _floor(kind, scales, size)
    allowed = roundings * _steps(bench, device, scales, floor)
    if parse_dtype(device.dtype).name in _FLUSHED:
        allowed += format_.smallest_normal
    with np.errstate(all="ignore"):
        errors = np.where(scales.finite, np.abs(d - b), 0.0)
        excess = np.where(np.isinf(allowed), 0.0, errors / allowed)
    worst = place_of(int(np.argmax(excess)), excess.shape)
    most = float(excess[worst])
    # Of the size that `allowed` is counted by: beside an element that is 0, its own ULP would be tiny.
    unit = float(spacing(np.maximum(scales.magnitudes[worst], floor), format_))
    found = {ULP: float(errors[worst]) / unit, ALLOWED: float(allowed[worst]) / unit, EXCESS: most}
    if most <= 1.0:
        return Finding(Status.PASS, rule, "", found)
    limit = thresholds.number("own", "error", real_dtype(device.dtype))
    status, known = Status.WARNING, ""
    if most > limit:
        known = _known(api, device.dtype, scales, errors, allowed * limit, size)
        status = Status.WARNING if known else Status.ERROR
    count = counted(int(np.count_nonzero(excess > 1.0)), excess.size)
    told = {
        "count": count,
        "place": place(worst),
        "values": beside(b, d, worst),
        "error": found[ULP],
        "name": parse_dtype(device.dtype).name,
        "allowed": found[ALLOWED],
    }
    if status is Status.ERROR or known:
        message = known + tr(
            "{count} off by more than is allowed; the largest error is at {place}: {values}, {error:.4g} ULP of "
            "{name}, {allowed:.4g} allowed",
            **told,
        )
    else:
        message = tr(
            "{count} off by more than is expected; the largest error is at {place}: {values}, {error:.4g} ULP of "
            "{name}, {allowed:.4g} expected, more than {limit:.4g} would be an error",
            **told,
            limit=limit * found[ALLOWED],
        )
    return Finding(status, rule, message, found)


def _known(api: ApiKey, dtype: str, scales: _Scales, errors: np.ndarray, allowed: np.ndarray, size: Size) -> str:
    """What is known of errors of this size, to be told before them; "" where nothing is."""
    known = known_error(api, real_dtype(dtype))
    if known is None:
        return ""
    absolute = known.absolute * (max(1.0, size.magnitude) if api.is_backward else 1.0)
    within = errors <= np.maximum(allowed, absolute + known.relative * scales.magnitudes)
    return tr("known: {reason}; ", reason=known.reason) if within.all() else ""


def _steps(bench: TypedArray, device: TypedArray, scales: _Scales, floor: float) -> np.ndarray:
    """By how much one rounding may set each element off: that of the device, of the reference, of their inputs."""
    of, own = float_format(device.dtype), float_format(bench.dtype)
    assert of is not None
    sizes = np.maximum(scales.magnitudes, floor) if floor else scales.magnitudes
    steps = spacing(sizes, of)
    if own is not None and own.mantissa - of.mantissa < _EXACT_BITS:
        steps = steps + spacing(sizes, own)
    if scales.explained is None:
        return steps
    # What one draw of roundings makes of a sum is small here and there by chance.
    return steps + (np.maximum(scales.explained, _typical(scales.explained)) if floor else scales.explained)


def _typical(explained: np.ndarray) -> float:
    """The standard deviation of normally distributed errors that have the median of those that are finite and not zero:
    a few that are large do not change it."""
    found = explained[np.isfinite(explained) & (explained > 0)]
    return float(np.median(found)) / _MEDIAN_OF_NORMAL if found.size else 0.0


def _floor(kind: Kind, scales: _Scales, size: Size) -> float:
    """The least size at which the ULP of an element is taken."""
    if kind is Kind.POINTWISE and terms(kind, size.elements, scales.magnitudes.size) <= 1:
        return 0.0
    flat = scales.magnitudes.ravel()
    largest = float(flat.max(initial=0.0))
    mean = 0.0
    if largest:
        parts = flat / largest  # their squares overflow no more
        mean = largest * math.sqrt(float(parts @ parts) / max(1, np.count_nonzero(scales.finite)))
    return max(mean, size.magnitude) if kind is Kind.CANCELLING else mean


def _roundings(api: ApiKey, kind: Kind, device: TypedArray, thresholds: Thresholds, size: Size) -> tuple[float, str]:
    """How many roundings a correct result may carry, and the rule in words."""
    dtype = real_dtype(device.dtype)
    one = thresholds.number("own", "roundings", dtype)
    count = terms(kind, size.elements, device.values.size)
    grown = thresholds.number("own", "growth", dtype) * math.sqrt(count) if count > 1 else 0.0
    if kind is Kind.OTHER:
        one *= thresholds.number("own", "composite")
        grown *= thresholds.number("own", "composite_growth")
    allowed = thresholds.table("own", "apis")
    times = next((allowed[name] for name in allowed if plain_name(name) == plain_name(api.last)), 1.0)
    rule = (
        tr("{kind}: {one:g} ULP", kind=kind_word(kind), one=one)
        if count <= 1
        else tr(
            "{kind}: {one:.4g} ULP for sums of {count:.0f} terms", kind=kind_word(kind), one=one + grown, count=count
        )
    )
    return (one + grown) * times, rule if times == 1.0 else tr(
        "{rule}, {times:g} times for {last}", rule=rule, times=times, last=api.last
    )
