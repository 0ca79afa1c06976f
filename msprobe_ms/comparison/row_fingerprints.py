"""Fingerprints of many rows in arrays, a place for each row: as one number each, as there may be millions of them."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from msprobe_ms.comparison.fingerprints import fingerprint_of
from msprobe_ms.comparison.row_items import RowItems

#: Odd, so that multiplying loses nothing: the golden ratio, as of 64 bits.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


def keys_of(items: RowItems) -> npt.NDArray[np.uint64]:
    """Return a number for the fingerprint of each item, equal where these are; 0 where there is none. All NaN are one.

    They have 60 bits, for which an integer of Python takes 32 bytes and not 48. That two of a million fingerprints have
    one number has a chance of 1 in 10⁶.
    """
    keys = np.zeros(len(items.numbers), np.uint64)
    if (table := items.table) is not None:
        rows = np.flatnonzero(items.regular)
        figures = np.frombuffer(table.statistics, np.float64).reshape(-1, 4)[items.numbers[rows]]
        sizes = np.array([number_of(size) for size in table.sizes])
        keys[rows] = _mixed(sizes[items.sorts[rows]], figures)
    for place, item in items.others.items():
        if (found := fingerprint_of(item)) is not None:
            elements, *figures = ([number_of(part)] for part in found)
            keys[place] = _mixed(np.array(elements), np.array(figures).T)[0]
    return keys


def norms_of(items: RowItems) -> npt.NDArray[np.float64]:
    """Return the Norm of each item, the last part of its fingerprint; NaN where there is none."""
    norms = np.full(len(items.numbers), np.nan)
    if (table := items.table) is not None:
        stored = items.stored
        norms[stored] = np.frombuffer(table.statistics, np.float64)[3::4][items.numbers[stored]]
        for place in np.flatnonzero((items.numbers >= 0) & ~items.regular).tolist():
            norms[place] = number_of(table.irregular[int(items.numbers[place])][3])
    for place, item in items.others.items():
        norms[place] = number_of(item.norm)
    return norms


def number_of(part: object) -> float:
    """Return a part of a fingerprint as a number: infinity for what is larger than any, NaN for what is none."""
    if not isinstance(part, (int, float)):
        return math.nan
    try:
        return float(part)
    except OverflowError:
        return math.inf if part > 0 else -math.inf


def _mixed(elements: npt.NDArray[np.float64], figures: npt.NDArray[np.float64]) -> npt.NDArray[np.uint64]:
    """A number for each row of ``elements`` and Max, Min, Mean and Norm."""
    keys = np.zeros(len(elements), np.uint64)
    for column in (elements, *figures.T):
        # Of two zeros, and of all NaN, is made one.
        keys ^= np.where(np.isnan(column), np.nan, column + 0.0).view(np.uint64)
        keys *= _FACTOR
        keys ^= keys >> _HALF
    keys[figures[:, 0] == figures[:, 1]] = 0
    return keys >> np.uint64(4)
