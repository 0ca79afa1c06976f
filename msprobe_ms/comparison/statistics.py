"""The four statistics of two items, and what they differ by: plain arithmetic on Max, Min, Mean and Norm."""

from __future__ import annotations

import math
from typing import TypeGuard

from msprobe_ms.arrays.statistics import Statistic
from msprobe_ms.dump.model import Item

#: Measured values by metric name: numbers, or the fixed tokens of the format (`"N/A"`…).
Metrics = dict[str, float | int | str | None]

#: Metric names of statistics: the difference and the relative error of each.
STATISTICS = ("maximum", "minimum", "mean", "norm")
DIFFERENCES = ("max_difference", "min_difference", "mean_difference", "norm_difference")
RELATIVES = ("max_relative", "min_relative", "mean_relative", "norm_relative")

_NUMBER = (int, float)


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
    return "" if value == 0 else "NaN" if value != value else "infinity" if value > 0 else "-infinity"


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
