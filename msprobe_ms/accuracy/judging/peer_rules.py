"""The figures and verdicts of msprobe's own checkers: that of PyTorch, and that of MindSpore."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np

from msprobe_ms.accuracy.judging import figures as fig
from msprobe_ms.accuracy.judging.model import ApiKey, Profile, Status
from msprobe_ms.accuracy.judging.standards import STANDARD_DTYPES, Standard
from msprobe_ms.accuracy.judging.thresholds import Thresholds
from msprobe_ms.accuracy.judging.ulp import float_format
from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.typed import TypedArray

TYPES_DIFFER = "bench and npu output type is different."
STRUCTURES_DIFFER = "bench and npu output structure is different."
#: What the MindSpore checker says of what it cannot measure, in its order.
_NOT_VALID = "two inputs are not valid for computing {}, skip comparing "
INVALID_FOR_MINDSPORE = "".join(
    map(_NOT_VALID.format, ("cosine similarity", "max absolute difference", "max relative difference"))
)

#: What the largest element of an array of zeros is at most.
_ZERO = float(np.finfo(np.float64).eps)
#: What the checker of PyTorch adds to elements of bfloat16 before it divides by them.
_BFLOAT16_EPSILON = 2.0**-8


class Verdict(NamedTuple):
    """A status and, where it is no plain pass, why."""

    status: Status
    message: str = ""


class Compared(NamedTuple):
    """Two arrays of one shape, of real numbers, widened to float64, and what they were.

    ``errors`` |device - bench| · ``finite`` where both are · ``relative`` errors by ``|bench| + epsilon``
    """

    bench: np.ndarray
    device: np.ndarray
    errors: np.ndarray
    finite: np.ndarray
    relative: np.ndarray
    dtype: str
    epsilon: float


def compared(bench: TypedArray, device: TypedArray) -> Compared:
    """Lay two arrays of one shape side by side; the parts of complex numbers are numbers of their own."""
    b, d = (_real(each.values) for each in (bench, device))
    dtype = parse_dtype(device.dtype)
    epsilon = _BFLOAT16_EPSILON if dtype.name == "bfloat16" else parse_dtype(bench.dtype).epsilon or dtype.epsilon
    with np.errstate(all="ignore"):
        errors = np.abs(d - b)
    return Compared(
        b, d, errors, np.isfinite(b) & np.isfinite(d), fig.relative_errors(b, errors, epsilon), dtype.name, epsilon
    )


def _real(values: np.ndarray) -> np.ndarray:
    if np.iscomplexobj(values):
        return np.stack([values.real, values.imag], axis=-1).astype(np.float64)
    return np.asarray(values, np.float64)


def all_figures(
    pair: Compared, standard: Standard, thresholds: Thresholds, generation: Literal["v110", "latest"]
) -> dict[str, float | None]:
    """The figures of floats: those of no standard, those of the MindSpore checker apart, and those of the standard."""
    found: dict[str, float | None] = {fig.COSINE: _cosine(pair), fig.MAX_ABSOLUTE: fig.max_absolute(pair.errors)}
    found |= {key: fig.share(pair.relative < limit) for key, limit in fig.SHARES.items()}
    if standard is Standard.BINARY:
        with np.errstate(all="ignore"):
            found[fig.UNEQUAL] = fig.share(pair.bench != pair.device)
    elif pair.dtype in STANDARD_DTYPES:
        limits = thresholds.table(generation, pair.dtype)
        if standard is Standard.ABSOLUTE:
            found |= _absolute(pair, limits)
        elif standard is Standard.ULP:
            found |= _ulp(pair, thresholds.number("many_ulps", pair.dtype))
        elif standard is Standard.BENCHMARK:
            found |= _benchmark(pair, limits)
    return found


def mindspore_figures(pair: Compared) -> dict[str, float | None]:
    """The three figures of the MindSpore checker, which treats all dtypes alike."""
    return {
        fig.COSINE: fig.cosine_as_mindspore(pair.bench, pair.device),
        fig.MAX_ABSOLUTE: fig.max_absolute(pair.errors),
        fig.MAX_RELATIVE: fig.max_relative_as_mindspore(pair.bench, pair.errors),
    }


def _cosine(pair: Compared) -> float | None:
    """None where it is not judged by: of one element, and of zeros."""
    if pair.bench.size < 2 or any(np.abs(each).max() <= _ZERO for each in (pair.bench, pair.device)):
        return None
    return fig.cosine_as_pytorch(pair.bench, pair.device)


def _absolute(pair: Compared, limits: Mapping[str, float]) -> dict[str, float | None]:
    small = fig.small_values(pair.bench, pair.finite, limits["small_value"])
    largest = _largest(pair.dtype)
    return {
        fig.NON_FINITE_ERRORS: fig.non_finite_errors(
            pair.bench, pair.device, pair.finite, largest, pair.epsilon, limits["rtol"]
        ),
        fig.RELATIVE_ERRORS: fig.share(pair.relative > limits["rtol"], pair.finite & ~small),
        fig.ABSOLUTE_ERRORS: fig.share(pair.errors > limits["small_value_atol"], small),
    }


def _ulp(pair: Compared, many: float) -> dict[str, float | None]:
    format_ = float_format(pair.dtype)
    assert format_ is not None
    ulps = fig.ulp_errors(pair.bench, pair.device, format_)
    if not ulps.size:
        return dict.fromkeys((fig.MAX_ULP, fig.MEAN_ULP, fig.MANY_ULPS), 0.0)
    return {fig.MAX_ULP: float(ulps.max()), fig.MEAN_ULP: float(ulps.mean()), fig.MANY_ULPS: fig.share(ulps > many)}


def _benchmark(pair: Compared, limits: Mapping[str, float]) -> dict[str, float | None]:
    small = fig.small_values(pair.bench, pair.finite, limits["small_value"])
    normal = pair.finite & ~small
    relative = pair.relative[normal]
    return {
        fig.SMALL_VALUE_ERRORS: fig.share(pair.errors > limits["benchmark_atol"], small),
        fig.ROOT_MEAN_SQUARE: fig.root_mean_square_error(pair.errors, normal),
        fig.ERROR_BALANCE: fig.error_balance(pair.bench, pair.device, pair.dtype),
        fig.MAX_NORMAL_RELATIVE: float(relative.max(initial=0.0)),
        fig.MEAN_NORMAL_RELATIVE: float(relative.mean()) if relative.size else 0.0,
    }


def _largest(dtype: str) -> float:
    format_ = float_format(dtype)
    assert format_ is not None
    return format_.largest


def judge_as_mindspore(found: Mapping[str, float | None], thresholds: Thresholds) -> Verdict:
    """``pass`` where cosine and largest absolute error are both within their limits, else ``error``."""
    limits = thresholds.table("verdict")
    cosine, absolute = found[fig.COSINE], found[fig.MAX_ABSOLUTE]
    message = ""
    if not _above(cosine, limits["cosine"]):
        message += f"cosine similarity is less than threshold: {limits['cosine']:g} "
    if not _below(absolute, limits["max_absolute"]):
        message += f"max absolute difference is greater than threshold: {limits['max_absolute']:g} "
    return Verdict(Status.ERROR if message else Status.PASS, message)


def judge_as_pytorch(api: ApiKey, pair: Compared, found: Mapping[str, float | None], thresholds: Thresholds) -> Verdict:
    """The verdict of floats: by zeros for dropout, else by cosine, largest absolute error and shares, in this order."""
    limits = thresholds.table("verdict")
    if is_dropout(api):
        return judge_dropout(pair.bench, pair.device, thresholds)
    if not pair.relative.size:
        return Verdict(Status.ERROR, "Relative error result list is empty.")
    if (failed := _cosine_failure(pair, found[fig.COSINE], limits["cosine"])) is not None:
        return Verdict(Status.ERROR, failed)
    if _below(found[fig.MAX_ABSOLUTE], limits["max_absolute"]):
        return Verdict(Status.PASS)
    narrow = pair.dtype not in ("float32", "float64", "complex64", "complex128")
    first, second = (
        (fig.WITHIN_HUNDREDTH, fig.WITHIN_THOUSANDTH) if narrow else (fig.WITHIN_THOUSANDTH, fig.WITHIN_TEN_THOUSANDTH)
    )
    for key, status in ((first, Status.ERROR), (second, Status.WARNING)):
        if not _above(found[key], limits[key]):
            return Verdict(status, f"Share of relative errors below {fig.SHARES[key]:g} is not above {limits[key]:g}.")
    return Verdict(Status.PASS)


def _cosine_failure(pair: Compared, cosine: float | None, limit: float) -> str | None:
    """Why the cosine fails; None where it does not, or is not judged by."""
    if cosine is not None:
        return None if _above(cosine, limit) else f"Cosine similarity is not above {limit:g}."
    zeros = [bool(np.abs(each).max() <= _ZERO) for each in (pair.bench, pair.device)]
    if pair.bench.size < 2 or all(zeros):
        return None
    return f"All the data is zero in {'bench' if zeros[0] else 'device'} output."


def is_dropout(api: ApiKey) -> bool:
    return "dropout" in api.last.lower()


def judge_dropout(bench: np.ndarray, device: np.ndarray, thresholds: Thresholds) -> Verdict:
    """Judge random results by how many zeros they hold."""
    limits = thresholds.table("verdict")
    if bench.size < limits["dropout_elements"]:
        return Verdict(Status.PASS)
    difference = abs(int(np.count_nonzero(bench == 0)) - int(np.count_nonzero(device == 0))) / bench.size
    if difference < limits["dropout_zeros"]:
        return Verdict(Status.PASS)
    return Verdict(Status.ERROR, f"The shares of zeros differ by {difference:.3g}.")


def generation_of(profile: Profile) -> Literal["v110", "latest"]:
    """Return whose lists and limits the figures of a profile follow; ours follow those of 1.1.0."""
    return "latest" if profile == "latest" else "v110"


def _above(value: float | None, limit: float) -> bool:
    return value is not None and value > limit


def _below(value: float | None, limit: float) -> bool:
    return value is not None and value < limit
