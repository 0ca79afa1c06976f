"""Tensor files that hold something else than dump.json says of them: of another run, exchanged, or written over."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from msprobe_ms.comparison.comparable import without_ones
from msprobe_ms.comparison.scale import magnitude
from msprobe_ms.comparison.statistics import STATISTICS
from msprobe_ms.dump.model import Item

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
        return f"it has shape {list(array.shape)}, recorded is {list(item.shape)}"
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
            return f"it holds {'NaN' if math.isnan(found) else 'infinity'}, the recorded figures are finite"
        if not abs(found - theirs) <= max(_NEAR * scale, _SMALLEST):
            return f"its {name} is {found:.6g}, recorded is {theirs:.6g}"
    return ""
