"""Tensors that a mask has filled: scores of which those that must not count were set to -1e9, or -65504.

Beside such numbers everything else is rounding, so that what is filled is held apart: the largest element tells of
the others, and in real data they are measured alone. A fill of -inf needs none of this: no sum takes it in.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from msprobe_ms.arrays.metrics import TensorDifference, tensor_difference
from msprobe_ms.arrays.statistics import Statistic

#: A fill is at most this, and as many times larger than the largest element as this says: scores of a net are neither.
FILL, TIMES = -1e3, 100.0
#: Part of the fill that an element is at least as large as, which the fill was added to or put in the place of.
_PART = 0.5
#: Part of the fill up to which two elements are filled alike: the scores that one was added to round otherwise.
_ALIKE = 1e-5


def is_filled(maximum: Statistic, minimum: Statistic) -> bool:
    """Whether a tensor with these extremes holds a fill."""
    if not (isinstance(maximum, float) and isinstance(minimum, float)):
        return False
    return -np.inf < minimum <= FILL and 0 < TIMES * abs(maximum) <= -minimum


def unfilled_difference(
    target: npt.NDArray[np.generic], golden: npt.NDArray[np.generic], minimum: float, whole: TensorDifference
) -> TensorDifference:
    """``whole`` with the size of the difference, and the golden's, over the elements that are not filled alike.

    ``minimum``: the golden's, with which it is filled. Elements filled on one side alone, or otherwise, count.
    """
    if target.shape != golden.shape:
        return whole
    with np.errstate(all="ignore"):
        apart = np.abs(target.astype(np.float64) - golden.astype(np.float64))
    filled = (golden <= _PART * minimum) & (apart <= _ALIKE * -minimum)  # type: ignore[operator]
    if filled.all() or not filled.any():
        return whole
    rest = tensor_difference(target[~filled], golden[~filled])
    return replace(whole, relative_l2=rest.relative_l2, error_rms=rest.error_rms, golden_rms=rest.golden_rms)
