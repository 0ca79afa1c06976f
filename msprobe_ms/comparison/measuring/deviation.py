"""The deviation of one pair of tensors from their statistics (see ``measure``); ``deviation_columns`` has it for many.

Two texts of one formula: here statistics may be missing, and those of integers are exact, which no column of floats is.
"""

from __future__ import annotations

import math

import numpy as np

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.arrays.statistics import Statistic
from msprobe_ms.comparison.measuring.mask_fills import is_filled
from msprobe_ms.comparison.measuring.narrow_casts import rounded_on_one_side
from msprobe_ms.comparison.scale import element_count, magnitude, root_mean_square
from msprobe_ms.comparison.statistics import STATISTICS
from msprobe_ms.dump.model import Item

#: What a statistic of one element counts beside those of all: a kernel's approximation may be coarse in one spot
#: (MindSpore's tanh on CPU is off by 1e-4 where it saturates, by 1e-6 elsewhere).
EXTREME = 0.1


def statistic_deviation(target: Item, golden: Item, floor: float = 0.0) -> float | None:
    """Measure the four statistics of two tensors as one relative difference; None if none is known on both sides.

    ``floor``: least root mean square the tensor is held against (see ``Tolerances.gradient_floor``).
    """
    rms = max(root_mean_square(golden) or 0.0, floor)
    peak = max(magnitude(golden.maximum), magnitude(golden.minimum))
    length = math.sqrt(max(1, element_count(golden)))
    largest = magnitude(golden.maximum) if is_filled(golden.maximum, golden.minimum) else max(peak, rms)
    scales = (largest, max(peak, rms), rms or peak, max(magnitude(golden.norm), rms * length))
    most, least, mean, norm = (
        _part(getattr(target, name), getattr(golden, name), scale)
        for name, scale in zip(STATISTICS, scales, strict=True)
    )
    whole = [part for part in (mean, norm) if part is not None]
    share = EXTREME if whole and parse_dtype(golden.dtype).epsilon and not _is_rounded(target, golden) else 1.0
    return max([*whole, *(share * part for part in (most, least) if part is not None)], default=None)


def _is_rounded(target: Item, golden: Item) -> bool:
    """Whether float32 on one side alone went through a narrower float."""
    ends = target.maximum, target.minimum, golden.maximum, golden.minimum
    if parse_dtype(golden.dtype).name != "float32" or not all(isinstance(end, float) for end in ends):
        return False
    return bool(rounded_on_one_side(np.array([ends[:2]], np.float64), np.array([ends[2:]], np.float64))[0])


def _part(mine: Statistic, theirs: Statistic, scale: float) -> float | None:
    if not (isinstance(mine, (int, float)) and isinstance(theirs, (int, float))):
        return None
    if mine == theirs or (mine != mine and theirs != theirs):
        return 0.0
    delta = abs(mine - theirs)
    return delta / scale if scale > 0 and math.isfinite(delta) else math.inf
