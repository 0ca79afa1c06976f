"""Our own judgement: an element's error in ULP of its dtype, beside what a correct computation may be off by.

    allowed = roundings · (ulp(b) + ulp_of_the_reference(b) + expected)
    roundings = (operation + growth · √terms) · what the user allows the API

``b`` is the element of the reference, or, where steps between may cancel, no less than the root mean square of all of
them. A sum of n terms that are rounded one by one is off by about √n ULP (Higham, Accuracy and Stability of Numerical
Algorithms, 2nd ed., § 2.8). ``expected`` is by how much the reference itself moves when its inputs are rounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from msprobe_ms.accuracy.judging.kinds import Kind, kind_of, terms
from msprobe_ms.accuracy.judging.model import ApiKey, Status
from msprobe_ms.accuracy.judging.thresholds import Thresholds
from msprobe_ms.accuracy.judging.ulp import FloatFormat, float_format, spacing
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.typed import TypedArray, rounded

#: Error of the worst element, what it is allowed, and the first over the second.
ULP, ALLOWED, EXCESS = "ulp", "allowed_ulp", "error_over_allowed"

#: With so many more bits a reference is exact.
_EXACT_BITS = 20

#: Dtypes whose smallest numbers many devices take for zero.
_FLUSHED = frozenset({"float64", "float32", "bfloat16", "complex64", "complex128"})


class Size(NamedTuple):
    """What is known of a call: elements of the largest tensor that goes in, and the largest absolute value in one."""

    elements: int | None = None
    magnitude: float = 0.0


class Finding(NamedTuple):
    """Our verdict of one output, with the rule that decided and the figures ``ULP``, ``ALLOWED``, ``EXCESS``."""

    status: Status
    rule: str
    message: str = ""
    figures: Mapping[str, float | None] = MappingProxyType({})


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
        return _exact(bench, device, None if kind is Kind.EXACT else expected)
    if not device.values.size:
        return Finding(Status.PASS, "no elements", "", {ULP: 0.0, ALLOWED: 0.0, EXCESS: 0.0})
    bench = _with_limits_of(bench, device, format_)
    explained = None if expected is None else _explained(expected, bench.values.shape)
    b, d = _wide(rounded_range(bench, device.dtype)), _wide(device.values)
    finite = np.isfinite(b) & np.isfinite(d)
    if not finite.all() and (misplaced := _misplaced(b, d, explained)) is not None:
        return misplaced
    scales = _Scales(np.where(finite, np.abs(b), 0.0), finite, explained)
    return _rounding(api, kind, bench, device, thresholds, size, scales)


class _Scales(NamedTuple):
    """Of each element: its size in the reference, whether it is finite on both sides, what explains an error of it."""

    magnitudes: np.ndarray
    finite: np.ndarray
    explained: np.ndarray | None


def rounded_range(bench: TypedArray, dtype: str) -> np.ndarray:
    """The reference with what ``dtype`` cannot hold made infinite, as a device's results are."""
    values = bench.values
    if np.iscomplexobj(values):
        parts = [rounded_range(TypedArray("float64", part), dtype) for part in (values.real, values.imag)]
        return parts[0] + 1j * parts[1]
    format_ = float_format(dtype)
    largest = np.max(np.abs(values), initial=0.0)
    if format_ is not None and largest <= format_.largest:  # not so where it is NaN
        return values
    near = rounded(values, _real_dtype(dtype)).values
    return np.where(np.isinf(near), near, values)


def _with_limits_of(bench: TypedArray, device: TypedArray, format_: FloatFormat) -> TypedArray:
    """The reference with the largest number of its dtype, which may stand for "none is larger", as the device's."""
    own = float_format(bench.dtype)
    if own is None or own == format_ or np.iscomplexobj(bench.values):
        return bench
    limits = (np.abs(bench.values) == own.largest) & (np.abs(device.values) == format_.largest)
    if not limits.any():
        return bench
    return TypedArray(bench.dtype, np.where(limits, np.copysign(format_.largest, bench.values), bench.values))


def _exact(bench: TypedArray, device: TypedArray, expected: np.ndarray | float | None) -> Finding:
    """Equal elements, NaN at equal places; floats of the reference are rounded to the device's dtype."""
    d, b = device.values, bench.values
    if float_format(device.dtype) is not None and not np.iscomplexobj(d) and not np.iscomplexobj(b):
        b = rounded(b, device.dtype).values
    unequal = unequal_elements(b, d)
    if expected is not None and unequal.any():
        unequal &= ~(np.abs(_wide(d) - _wide(b)) <= _explained(expected, d.shape))
    count = int(np.count_nonzero(unequal))
    if not count:
        return Finding(Status.PASS, "exact", "", {ULP: 0.0, ALLOWED: 0.0, EXCESS: 0.0})
    where = _first(unequal)
    message = f"{_counted(count, unequal.size)} unequal; first at {_place(where)}: {_beside(b, d, where)}"
    return Finding(Status.ERROR, "exact", message, _exact_figures(b, d, device.dtype))


def _exact_figures(b: np.ndarray, d: np.ndarray, dtype: str) -> dict[str, float | None]:
    format_ = float_format(dtype)
    finite = np.isfinite(_wide(b)) & np.isfinite(_wide(d))
    if format_ is None or not finite.any():
        return {ULP: None, ALLOWED: 0.0, EXCESS: math.inf}
    errors = np.abs(_wide(d)[finite] - _wide(b)[finite]) / spacing(_wide(b)[finite], format_)
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


def _misplaced(b: np.ndarray, d: np.ndarray, explained: np.ndarray | None) -> Finding | None:
    """The verdict where NaN and infinities do not stand in the same places; None where they do."""
    same = np.where(np.isfinite(b), np.isfinite(d), (b == d) | (np.isnan(b) & np.isnan(d)))
    wrong = ~same if explained is None else ~same & ~np.isinf(explained)
    count = int(np.count_nonzero(wrong))
    if not count:
        return None
    where = _first(wrong)
    message = f"{_counted(count, wrong.size)} with another NaN or infinity; first at {_place(where)}: "
    figures = {ULP: None, ALLOWED: None, EXCESS: math.inf}
    return Finding(Status.ERROR, "NaN and infinity", message + _beside(b, d, where), figures)


def _rounding(
    api: ApiKey,
    kind: Kind,
    bench: TypedArray,
    device: TypedArray,
    thresholds: Thresholds,
    size: Size,
    scales: _Scales,
) -> Finding:
    b, d, format_ = _wide(bench.values), _wide(device.values), float_format(device.dtype)
    assert format_ is not None
    roundings, rule = _roundings(api, kind, device, thresholds, size)
    allowed = roundings * _steps(bench, device, scales, _floor(kind, scales, size))
    if parse_dtype(device.dtype).name in _FLUSHED:
        allowed += format_.smallest_normal
    with np.errstate(all="ignore"):
        errors = np.where(scales.finite, np.abs(d - b), 0.0)
        excess = np.where(np.isinf(allowed), 0.0, errors / allowed)
    worst = _place_of(int(np.argmax(excess)), excess.shape)
    most = float(excess[worst])
    unit = float(spacing(scales.magnitudes[worst], format_))
    found = {ULP: float(errors[worst]) / unit, ALLOWED: float(allowed[worst]) / unit, EXCESS: most}
    if most <= 1.0:
        return Finding(Status.PASS, rule, "", found)
    status = Status.ERROR if most > thresholds.number("own", "error", _real_dtype(device.dtype)) else Status.WARNING
    count = _counted(int(np.count_nonzero(excess > 1.0)), excess.size)
    message = (
        f"{count} off by more than is allowed; most at {_place(worst)}: {_beside(b, d, worst)}, "
        f"{found[ULP]:.4g} ULP of {parse_dtype(device.dtype).name}, {found[ALLOWED]:.4g} allowed"
    )
    return Finding(status, rule, message, found)


def _steps(bench: TypedArray, device: TypedArray, scales: _Scales, floor: float) -> np.ndarray:
    """By how much one rounding may set each element off: that of the device, of the reference, of their inputs."""
    of, own = float_format(device.dtype), float_format(bench.dtype)
    assert of is not None
    sizes = np.maximum(scales.magnitudes, floor) if floor else scales.magnitudes
    steps = spacing(sizes, of)
    if own is not None and own.mantissa - of.mantissa < _EXACT_BITS:
        steps = steps + spacing(sizes, own)
    return steps if scales.explained is None else steps + scales.explained


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
    dtype = _real_dtype(device.dtype)
    one = thresholds.number("own", "roundings", dtype)
    count = terms(kind, size.elements, device.values.size)
    grown = thresholds.number("own", "growth", dtype) * math.sqrt(count) if count > 1 else 0.0
    if kind is Kind.OTHER:
        one *= thresholds.number("own", "composite")
        grown *= thresholds.number("own", "composite_growth")
    times = thresholds.table("own", "apis").get(api.last, 1.0)
    rule = f"{kind}: {one:g} ULP" if count <= 1 else f"{kind}: {one + grown:.4g} ULP for sums of {count:.0f} terms"
    return (one + grown) * times, rule if times == 1.0 else f"{rule}, {times:g} times for {api.last}"


def _real_dtype(dtype: str) -> str:
    """The dtype of the parts of complex numbers; every other is its own."""
    name = parse_dtype(dtype).name
    return {"complex64": "float32", "complex128": "float64", "complex32": "float16"}.get(name, name)


def _explained(expected: np.ndarray | float | None, shape: tuple[int, ...]) -> np.ndarray:
    """The expected errors of all elements; NaN explains nothing."""
    given = np.abs(np.asarray(0.0 if expected is None else expected, dtype=np.float64))
    return np.broadcast_to(np.where(np.isnan(given), 0.0, given), shape)


def _wide(values: np.ndarray) -> np.ndarray:
    return np.asarray(values, np.complex128 if np.iscomplexobj(values) else np.float64)


def _counted(count: int, total: int) -> str:
    return f"{count} of {total} element{'' if total == 1 else 's'} {'is' if count == 1 else 'are'}"


def _first(mask: np.ndarray) -> tuple[int, ...]:
    return _place_of(int(np.argmax(mask)), mask.shape)


def _place_of(number: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(int, np.unravel_index(number, shape)))


def _place(where: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, where))})"


def _beside(b: np.ndarray, d: np.ndarray, where: tuple[int, ...]) -> str:
    return f"{_shown(d[where])} beside {_shown(b[where])} of the reference"


def _shown(value: np.generic) -> str:
    plain = value.item()
    return f"{plain:.9g}" if isinstance(plain, (float, complex)) else str(plain)
