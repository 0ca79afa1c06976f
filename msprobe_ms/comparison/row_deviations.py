"""How far rows are apart in arrays, a place for each row, so that something can be asked of all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from msprobe_ms.comparison.row_items import Mask
from msprobe_ms.comparison.terms import Effect

if TYPE_CHECKING:
    from msprobe_ms.comparison.model import Row


#: Effects of what explains a row that change whether it differs.
_DECIDE = (Effect.NO_ERROR, Effect.HOLDS)


class RowDeviations(NamedTuple):
    """What measuring and the search for origins left in rows, a place for each.

    ``values``   their deviations; NaN where nothing was compared
    ``held_to``  the deviations up to which they are held to agree; NaN where nothing was compared
    ``known``    whether there is a deviation
    ``differs``, ``misrecorded``  as of a ``Row``, where it has a deviation
    """

    values: npt.NDArray[np.float64]
    held_to: npt.NDArray[np.float64]
    known: Mask
    differs: Mask
    misrecorded: Mask

    @property
    def ratios(self) -> npt.NDArray[np.float64]:
        """The error ratios: 0 where there is nothing to compare or the record alone differs."""
        with np.errstate(all="ignore"):
            ratios = np.where(self.held_to > 0, self.values / self.held_to, np.inf)
        ratios[(self.values == 0) | np.isnan(self.held_to) | ~self.known | self.misrecorded] = 0.0
        return ratios


def deviations_of(rows: Sequence[Row]) -> RowDeviations:
    """Return how far rows are apart that were measured, and whose origins were found."""
    deviations, tolerances = [row.deviation for row in rows], [row.tolerance for row in rows]
    values, bounds = np.array(deviations, np.float64), np.array(tolerances, np.float64)
    known = np.array([each is not None for each in deviations], np.bool_)
    judged = known & np.array([each is not None for each in tolerances], np.bool_)
    differs = judged & ~(values <= bounds)
    misrecorded = np.zeros(len(rows), np.bool_)
    for place, row in enumerate(rows):
        if (explained := row.explained) is not None and explained.effect in _DECIDE and judged[place]:
            differs[place], misrecorded[place], bounds[place] = row.differs, row.misrecorded, row.held_to
    return RowDeviations(values, bounds, known, differs, misrecorded)
