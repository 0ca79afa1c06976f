"""Figures of a tensor that was summarised before, as long as its memory holds the same.

In one step a tensor is met several times: as the result of a call, of the module around it, as the argument of the
next. A checksum of it takes a quarter of the time of its figures.
"""

from __future__ import annotations

import numpy as np
from isal import isal_zlib

from msprobe_ms.arrays.statistics import Statistics, statistics


class Memo:
    """Figures by place in memory. Lives for one step.

    Nothing is taken on trust: frameworks write in place, and give memory they freed to other tensors, without telling.
    What is found at a place is known again by dtype, size and CRC-32; a change that keeps the CRC-32 of the bytes goes
    unseen, one in four billion.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, np.dtype, bool], tuple[int, Statistics]] = {}

    def summary(self, place: tuple[int, int], array: np.ndarray) -> tuple[Statistics, int]:
        """``statistics(array)``, and the CRC-32 of its bytes in the order of memory.

        ``place`` is the address of the tensor and the number of its bytes.
        """
        flat = array.ravel("K")
        checksum = isal_zlib.crc32(flat)
        key = (*place, array.dtype, array.ndim == 0)  # a scalar's norm has a sign
        known = self._known.get(key)
        if known is None or known[0] != checksum:
            known = self._known[key] = checksum, statistics(array if array.ndim == 0 else flat)
        return known[1], checksum
