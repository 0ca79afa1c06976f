"""The deviation of many pairs of tensors from their statistics, column by column: ``statistic_deviation`` at once.

A dump of a training step has some 100,000 tensors; one by one their arithmetic would take most of a comparison.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from msprobe_ms.arrays.dtypes import parse_dtype
from msprobe_ms.comparison.measuring.deviation import EXTREME
from msprobe_ms.comparison.measuring.mask_fills import FILL, TIMES
from msprobe_ms.comparison.measuring.narrow_casts import rounded_on_one_side
from msprobe_ms.comparison.scale import elements_of
from msprobe_ms.dump.columns import ItemTable

Floats = npt.NDArray[np.float64]


class StatisticColumns:
    """The statistics of a target's and a golden's items: Max, Min, Mean and Norm, n rows of 4."""

    def __init__(self, target: ItemTable, golden: ItemTable) -> None:
        self._target, self._golden = target, golden
        self._ours = np.frombuffer(target.statistics, np.float64).reshape(-1, 4)
        self._theirs = np.frombuffer(golden.statistics, np.float64).reshape(-1, 4)
        sorts = golden.known_sorts
        self._counts = np.array([elements_of(sort[3]) for sort in sorts], np.float64)
        self._shares = np.array([EXTREME if parse_dtype(sort[2]).epsilon else 1.0 for sort in sorts])
        self._single = np.array([parse_dtype(sort[2]).name == "float32" for sort in sorts])
        self._sorts = np.frombuffer(golden.sorts, np.uint32)

    def deviations(self, ours: Sequence[int], theirs: Sequence[int], floors: Sequence[float]) -> list[float]:
        """Measure the deviation of each pair of items, given by their numbers; as many as ``ours``.

        Both must be tensors with four statistics, all floats.
        """
        mine, golden = self._ours[np.asarray(ours, np.intp)], self._theirs[np.asarray(theirs, np.intp)]
        sorts = self._sorts[np.asarray(theirs, np.intp)]
        counts = self._counts[sorts]
        with np.errstate(all="ignore"):
            sizes = np.where(np.isfinite(golden), np.abs(golden), 0.0)
            rms = np.where(counts > 0, sizes[:, 3] / np.sqrt(np.maximum(counts, 1)), 0.0)
            rms = np.maximum(rms, np.asarray(floors, np.float64))
            peak = np.maximum(sizes[:, 0], sizes[:, 1])
            extreme = np.maximum(peak, rms)
            filled = (golden[:, 1] <= FILL) & (sizes[:, 0] > 0) & (TIMES * sizes[:, 0] <= sizes[:, 1])
            largest = np.where(filled, sizes[:, 0], extreme)
            norm = np.maximum(sizes[:, 3], rms * np.sqrt(np.maximum(counts, 1)))
            scales = np.stack((largest, extreme, np.where(rms > 0, rms, peak), norm), axis=1)
            parts = _parts(mine, golden, scales)
        rounded = self._single[sorts] & rounded_on_one_side(mine[:, :2], golden[:, :2])
        ends = np.where(rounded, 1.0, self._shares[sorts])[:, None] * parts[:, :2]
        found: list[float] = np.maximum(ends.max(axis=1), parts[:, 2:].max(axis=1)).tolist()
        return found


def _parts(mine: Floats, golden: Floats, scales: Floats) -> Floats:
    delta = np.abs(mine - golden)
    parts = np.where((scales > 0) & np.isfinite(delta), delta / scales, np.inf)
    parts[(mine == golden) | (np.isnan(mine) & np.isnan(golden))] = 0.0
    return parts
