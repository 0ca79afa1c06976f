"""Figures of msprobe's standards of comparison: one function each, and the keys they have in ``Judged.figures``.

``bench`` and ``device`` are real arrays of equal shape, widened to float64; ``b`` and ``d`` are elements of them and
``e = |d - b|``. Shares are of the elements concerned, and 0 where none is.
"""

from __future__ import annotations

import math

import numpy as np

from msprobe_ms.accuracy.judging.ulp import FloatFormat
from msprobe_ms.arrays.typed import rounded

COSINE = "cosine"
MAX_ABSOLUTE = "max_absolute"
#: The largest relative error of all elements, as the MindSpore checker has it.
MAX_RELATIVE = "max_relative"
WITHIN_HUNDREDTH = "within_hundredth"
WITHIN_THOUSANDTH = "within_thousandth"
WITHIN_TEN_THOUSANDTH = "within_ten_thousandth"
UNEQUAL = "binary_error_ratio"
ERROR_BALANCE = "error_balance"
ROOT_MEAN_SQUARE = "root_mean_square_error"
SMALL_VALUE_ERRORS = "small_value_error_ratio"
#: Of elements outside the small domain.
MAX_NORMAL_RELATIVE = "max_relative_error"
MEAN_NORMAL_RELATIVE = "mean_relative_error"
NON_FINITE_ERRORS = "inf_nan_error_ratio"
RELATIVE_ERRORS = "relative_error_ratio"
ABSOLUTE_ERRORS = "absolute_error_ratio"
MAX_ULP = "max_ulp_error"
MEAN_ULP = "mean_ulp_error"
MANY_ULPS = "ulp_error_ratio"

#: Shares of relative errors, and what the errors are below.
SHARES = {WITHIN_HUNDREDTH: 0.01, WITHIN_THOUSANDTH: 0.001, WITHIN_TEN_THOUSANDTH: 0.0001}

#: What the MindSpore checker adds to both parts of the cosine, and takes in place of zeros.
_TINY = 1e-8


def cosine_as_mindspore(bench: np.ndarray, device: np.ndarray) -> float:
    """``(1e-8 + Σ b·d) / (1e-8 + ‖b‖·‖d‖)``."""
    b, d = bench.ravel(), device.ravel()
    with np.errstate(all="ignore"):
        return float((_TINY + b @ d) / (_TINY + np.linalg.norm(b) * np.linalg.norm(d)))


def cosine_as_pytorch(bench: np.ndarray, device: np.ndarray) -> float:
    """The cosine of both, each divided by its largest absolute value first; within -1 and 1."""
    with np.errstate(all="ignore"):
        b, d = (each.ravel() / np.abs(each).max() for each in (bench, device))
        return float(np.clip(b @ d / (np.linalg.norm(b) * np.linalg.norm(d)), -1.0, 1.0))


def max_absolute(errors: np.ndarray) -> float:
    """``max e``; of no elements 0."""
    return float(errors.max(initial=0.0))


def max_relative_as_mindspore(bench: np.ndarray, errors: np.ndarray) -> float:
    """``max(e / |b|)`` with 1e-8 for ``|b|`` where it is 0."""
    with np.errstate(all="ignore"):
        return float((errors / np.where(bench == 0, _TINY, np.abs(bench))).max(initial=0.0))


def relative_errors(bench: np.ndarray, errors: np.ndarray, epsilon: float) -> np.ndarray:
    """``e / (|b| + epsilon)``, element by element."""
    with np.errstate(all="ignore"):
        return errors / (np.abs(bench) + epsilon)


def share(condition: np.ndarray, among: np.ndarray | None = None) -> float:
    """The share of elements, of those in the mask ``among`` or of all, for which a condition holds."""
    total = condition.size if among is None else int(np.count_nonzero(among))
    held = condition if among is None else condition & among
    return int(np.count_nonzero(held)) / total if total else 0.0


def small_values(bench: np.ndarray, finite: np.ndarray, small_value: float) -> np.ndarray:
    """The mask of the small domain: ``|b| ≤ small_value``, both finite."""
    return finite & (np.abs(bench) <= small_value)


def root_mean_square_error(errors: np.ndarray, counted: np.ndarray) -> float:
    """``√(mean(e²) · (n / (n - m + 1e-4) + 1e-4))``; ``m`` elements are not ``counted``, and their e is 0."""
    total = errors.size
    if not total:
        return 0.0
    kept = errors[counted]
    with np.errstate(all="ignore"):
        mean = float(kept @ kept) / total
    return math.sqrt(mean * (total / (kept.size + 1e-4) + 1e-4))


def error_balance(bench: np.ndarray, device: np.ndarray, dtype: str) -> float:
    """``|count(d > b) - count(d < b)| / n``, with ``b`` rounded to the device's dtype first."""
    near = rounded(bench, dtype).values
    above, below = int(np.count_nonzero(device > near)), int(np.count_nonzero(device < near))
    return abs(above - below) / device.size if device.size else 0.0


def non_finite_errors(
    bench: np.ndarray, device: np.ndarray, finite: np.ndarray, largest: float, epsilon: float, limit: float
) -> float:
    """Over elements that are not finite in ``b`` or ``d``: the share that disagrees.

    Both are cut to ±``largest`` first. They agree where both are NaN, or the relative error is at most ``limit``.
    """
    b, d = (np.clip(each[~finite], -largest, largest) for each in (bench, device))
    with np.errstate(all="ignore"):
        agree = (np.isnan(b) & np.isnan(d)) | (np.abs(d - b) / (np.abs(b) + epsilon) <= limit)
    return share(~agree)


def ulp_errors(bench: np.ndarray, device: np.ndarray, of: FloatFormat) -> np.ndarray:
    """``|(d - b) · 2^(p - k)|`` with ``k = max(⌊log2 |b|⌋, k_min)``, and 0 for it where ``b`` is 0.

    Computed in float64 for float32, and in float32 for narrower floats.
    """
    finite = np.where(np.isfinite(bench), bench, 0.0)
    _, exponents = np.frexp(np.abs(finite))
    floors = np.where(finite == 0, 0, np.maximum(exponents - 1, of.smallest_exponent))
    wide = np.float64 if of.mantissa >= 23 else np.float32
    with np.errstate(all="ignore"):
        return np.abs(np.ldexp((device.astype(wide) - bench.astype(wide)), of.mantissa - floors)).astype(np.float64)
