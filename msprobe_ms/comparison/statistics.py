"""Read what the recorded statistics of items say: how two differ, whether they can be compared, how large a tensor is.

Plain arithmetic on Max, Min, Mean and Norm, on dtypes, shapes and plain values. A tensor file that holds something else
than these say is of another run, exchanged, or written over (``contradiction``)."""

from __future__ import annotations

import math
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from msprobe_ms.arrays.dtypes import parse_dtype, same_dtype
from msprobe_ms.arrays.statistics import Statistic
from msprobe_ms.dump.model import Item
from msprobe_ms.support.translation import tr

#: Measured values by metric name: numbers, or the fixed tokens of the format (`"N/A"`…).
Metrics = dict[str, float | int | str | None]

#: Metric names of statistics: the difference and the relative error of each.
STATISTICS = ("maximum", "minimum", "mean", "norm")
DIFFERENCES = ("max_difference", "min_difference", "mean_difference", "norm_difference")
RELATIVES = ("max_relative", "min_relative", "mean_relative", "norm_relative")

_NUMBER = (int, float)
#: What NumPy's dtypes (``<f4``) and classes (``<class 'int'>``) begin with.
_BYTE_ORDERS = ("<", ">", "=", "|")


def is_number(value: Statistic) -> bool:
    """Whether a statistic is a number (bools count, as 0 and 1)."""
    return isinstance(value, (int, float))


def is_non_finite(value: object) -> TypeGuard[float]:
    """Whether a statistic is NaN or infinite."""
    return isinstance(value, float) and not math.isfinite(value)


def non_finite_ends(item: Item) -> list[float]:
    """Return what of Max and Min is NaN or infinite."""
    return [value for value in (item.maximum, item.minimum) if is_non_finite(value)]


def describe_non_finite(item: Item) -> str:
    """Name the first of Max and Min that is not finite, in words; "" where both are."""
    value = next(iter(non_finite_ends(item)), 0.0)
    return "" if value == 0 else "NaN" if value != value else tr("infinity") if value > 0 else tr("-infinity")


def statistic_metrics(target: Item, golden: Item) -> Metrics:
    """Measure target − golden and |difference / golden| of the four statistics; None where one is not a number.

    Equal ones differ by 0, NaN beside NaN included; a relative error over 0 is inf.
    """
    metrics: Metrics = {}
    ours = target.maximum, target.minimum, target.mean, target.norm
    golds = golden.maximum, golden.minimum, golden.mean, golden.norm
    for mine, theirs, difference, relative in zip(ours, golds, DIFFERENCES, RELATIVES, strict=True):
        if not (isinstance(mine, _NUMBER) and isinstance(theirs, _NUMBER)):
            metrics[difference] = metrics[relative] = None
        elif mine == theirs or (mine != mine and theirs != theirs):
            metrics[difference] = metrics[relative] = 0.0
        else:
            delta = mine - theirs
            metrics[difference] = delta
            metrics[relative] = abs(delta / theirs) if theirs else math.inf
    return metrics


def is_comparable(mine: str | None, theirs: str | None, shape: object, other_shape: object) -> bool:
    """Whether two tensors of these dtypes and shapes can be compared in value, so that they may agree.

    Another shape of as many elements is another layout: channels last, heads before positions, an axis of length 1. One
    that the other is broadcast to holds the same numbers several times.
    """
    if shape is None or other_shape is None:  # of a file so damaged that nothing tells
        return True
    if parse_dtype(mine).kind != parse_dtype(theirs).kind:
        return False
    if shape == other_shape:
        return True
    if not (isinstance(shape, tuple) and isinstance(other_shape, tuple)):
        return False
    return math.prod(shape) == math.prod(other_shape) or is_broadcast(shape, other_shape)


def is_broadcast(shape: object, other_shape: object) -> bool:
    """Whether one of two shapes of other numbers of elements is what the other is broadcast to, as numpy does."""
    if not (isinstance(shape, tuple) and isinstance(other_shape, tuple)) or math.prod(shape) == math.prod(other_shape):
        return False
    small, large = sorted((shape, other_shape), key=math.prod)
    if not math.prod(small) > 1 or len(small) > len(large):  # a single number is broadcast to anything
        return False
    return all(length in (1, other) for length, other in zip(small[::-1], large[::-1], strict=False))


def is_readable(dtype: str | None, shape: object) -> bool:
    """Whether a tensor's dtype and shape are such, or are not told: a damaged file may hold anything in their place."""
    if isinstance(shape, str):
        return False
    return dtype is None or (dtype[:1].isalpha() and dtype not in ("True", "False")) or dtype[:1] in _BYTE_ORDERS


def is_unread(target: Item, golden: Item) -> bool:
    """Whether something that was recorded of two tensors is no figure, no dtype or no shape."""
    return any(
        not is_readable(item.dtype, item.shape) or any(isinstance(figure, str) for figure in _figures(item))
        for item in (target, golden)
    )


def holds_value(item: Item) -> bool:
    """Whether anything was recorded of the elements of a tensor that has some."""
    if isinstance(item.shape, tuple) and not element_count(item):
        return False
    return any(recorded is not None for recorded in (*_figures(item), item.md5, item.data_name))


def _figures(item: Item) -> tuple[Statistic, ...]:
    return item.maximum, item.minimum, item.mean, item.norm


def without_ones(shape: object) -> object:
    return tuple(length for length in shape if length != 1) if isinstance(shape, tuple) else shape


def no_gradient(item: Item) -> bool:
    """No gradient reached this place: one framework leaves it out, another hands on zeros."""
    return item.kind == "null" or (item.kind == "tensor" and item.maximum == item.minimum == 0)


def checksums_comparable(target: Item, golden: Item) -> bool:
    """Whether both have a checksum, of bytes of one dtype: equal numbers of two dtypes have other bytes."""
    return target.md5 is not None and golden.md5 is not None and same_dtype(target.dtype, golden.dtype)


def have_sketches(target: Item, golden: Item) -> bool:
    """Whether both have a sketch, of elements in one order: axes of length 1 change none, other shapes may."""
    if target.sketch is None or golden.sketch is None:
        return False
    return target.shape == golden.shape or without_ones(target.shape) == without_ones(golden.shape)


def same_value(target: Item, golden: Item) -> bool:
    """Whether two plain values mean the same: numbers by value, dtypes across frameworks, anything else as text."""
    mine, theirs = target.maximum, golden.maximum
    if mine is None or theirs is None:
        return mine is theirs and str(target.shape) == str(golden.shape)
    if isinstance(mine, str) or isinstance(theirs, str):
        return str(mine) == str(theirs) or same_dtype(str(mine), str(theirs))
    if {target.kind, golden.kind} == {"tensor", "value"}:  # a scalar that a compiled graph holds in its own precision
        return math.isclose(
            mine, theirs, rel_tol=parse_dtype((target if target.kind == "tensor" else golden).dtype).epsilon
        )
    return mine == theirs or (mine != mine and theirs != theirs)


def _finite(value: Statistic) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def magnitude(value: Statistic) -> float:
    """|value|; 0 for what is no finite number."""
    return abs(float(value)) if isinstance(value, (int, float)) and math.isfinite(value) else 0.0


def square(value: float) -> float:
    """value², infinite where no double holds it, for which ``**`` raises an error."""
    return value * value


def element_count(item: Item) -> int:
    """Elements of a tensor; 0 where the shape is no tuple."""
    return elements_of(item.shape)


def elements_of(shape: object) -> int:
    """Elements of a tensor of this shape; 0 where it is no tuple."""
    return math.prod(shape) if isinstance(shape, tuple) else 0


def root_mean_square(item: Item) -> float | None:
    """Norm / sqrt(elements), from the statistics; None when they are not known."""
    count = element_count(item)
    return magnitude(item.norm) / math.sqrt(count) if count and _finite(item.norm) else None


#: How far Max and Min of a file may be from those recorded, as a share of the larger: figures of a narrow float that
#: were rounded are within it, bfloat16's by 0.4 %.
_NEAR = 0.01
#: The smallest number of float32 in full precision: below it figures may have been taken for 0.
_SMALLEST = float(np.finfo(np.float32).tiny)


def contradiction(item: Item, array: npt.NDArray[np.generic]) -> str:
    """Say what of a file's array cannot be what was recorded; "" where nothing is.

    The shape, axes of length 1 apart; NaN or infinity where all that was recorded is finite (a device may leave NaN out
    of Max and Min, but not out of Mean and Norm); Max or Min far from those recorded. Of complex numbers the shape.
    """
    if isinstance(item.shape, tuple) and without_ones(item.shape) != without_ones(array.shape):
        return tr(
            "it has shape {shape}, recorded is {other_shape}", shape=list(array.shape), other_shape=list(item.shape)
        )
    figures = [value for name in STATISTICS if isinstance(value := getattr(item, name), (int, float))]
    if not array.size or array.dtype.kind not in "biuf" or not all(map(math.isfinite, figures)):
        return ""
    recorded = item.maximum, item.minimum
    scale = max(map(magnitude, recorded))
    for name, mine, theirs in zip(("Max", "Min"), (array.max(), array.min()), recorded, strict=True):
        if not isinstance(theirs, (int, float)):
            continue
        found = float(mine)
        if not math.isfinite(found):
            return tr(
                "it holds {which}, the recorded statistics are finite",
                which="NaN" if math.isnan(found) else tr("infinity"),
            )
        if not abs(found - theirs) <= max(_NEAR * scale, _SMALLEST):
            return tr("its {name} is {found:.6g}, recorded is {theirs:.6g}", name=name, found=found, theirs=theirs)
    return ""


def least_sum_of_squares(terms: float, probability: float) -> float:
    """What the sum of squares of as many standard normal values exceeds but in cases of a small ``probability``.

    It has a chi-squared distribution of k degrees of freedom, of which for small x the probability of less than x is
    (x / 2)^(k / 2) / gamma(k / 2 + 1).
    """
    return 2 * (probability * math.gamma(terms / 2 + 1)) ** (2 / terms)
