"""Read names, dtypes, shapes, statistics and differences of many rows at once, column by column.

Rows that point into the dumps' columns are read there; of all others the items are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.statistics import RELATIVES, STATISTICS
from msprobe_ms.comparison.terms import GOLDEN, TARGET, Side
from msprobe_ms.dump.columns import NULL, ItemTable, Sort
from msprobe_ms.dump.model import Item

Floats = npt.NDArray[np.float64]
Values = list[object]


class RowColumns:
    """Columns of some rows: a value for each row, None where the row has no item on that side."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self.target, self.golden = SideColumns(rows, TARGET), SideColumns(rows, GOLDEN)

    @cached_property
    def relatives(self) -> dict[str, Values]:
        """The relative differences of the statistics, by their names as metrics."""
        mine, theirs = self.target.floats, self.golden.floats
        with np.errstate(all="ignore"):
            relative = np.where(theirs != 0, np.abs((mine - theirs) / theirs), np.inf)
            equal = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
        relative[equal] = 0.0
        columns: dict[str, Values] = dict(zip(RELATIVES, relative.T.tolist(), strict=True))
        for place in sorted({*self.target.others, *self.golden.others}):
            metrics = self._rows[place].metrics
            for name, column in columns.items():
                column[place] = metrics.get(name)
        return columns


class SideColumns:
    """The items of one side; ``others`` are the places of those whose statistics are not four floats of a table."""

    def __init__(self, rows: Sequence[Row], side: Side) -> None:
        self._rows, self._side = rows, side
        stored = [row.stored(side) for row in rows]
        self._table = next((each[0] for each in stored if each is not None), ItemTable())
        self._numbers = [None if each is None or each[0] is not self._table else each[1] for each in stored]
        odd = self._table.irregular
        self.others = [place for place, number in enumerate(self._numbers) if number is None or number in odd]

    @cached_property
    def floats(self) -> Floats:
        """Max, Min, Mean and Norm: float64 of shape (rows, 4); anything at the places of ``others``."""
        if not len(self._table):
            return np.zeros((len(self._rows), 4))
        statistics = np.frombuffer(self._table.statistics, np.float64).reshape(-1, 4)
        return statistics[[number or 0 for number in self._numbers]]

    @cached_property
    def statistics(self) -> dict[str, Values]:
        """The four statistics by their names."""
        columns: dict[str, Values] = dict(zip(STATISTICS, self.floats.T.tolist(), strict=True))
        for place in self.others:
            item = self._item(place)
            for name, column in columns.items():
                column[place] = getattr(item, name, None)
        return columns

    @property
    def names(self) -> Values:
        name = self._table.name
        return [
            name(number) if number is not None else getattr(self._item(place), "name", None)
            for place, number in enumerate(self._numbers)
        ]

    @property
    def dtypes(self) -> Values:
        return [sort[2] for sort in self._sorts]

    @property
    def shapes(self) -> Values:
        return [sort[3] for sort in self._sorts]

    @property
    def requires_grad(self) -> Values:
        return [sort[4] for sort in self._sorts]

    def read(self, read: Callable[[Item], object]) -> Values:
        """What else the items hold."""
        return [None if (item := self._item(place)) is None else read(item) for place in range(len(self._rows))]

    @cached_property
    def _sorts(self) -> list[Sort]:
        sort = self._table.sort
        return [
            sort(number) if number is not None else self._sort_of(place) for place, number in enumerate(self._numbers)
        ]

    def _sort_of(self, place: int) -> Sort:
        item = self._item(place)
        return NULL if item is None else (item.kind, item.type, item.dtype, item.shape, item.requires_grad)

    def _item(self, place: int) -> Item | None:
        row = self._rows[place]
        return row.target if self._side is TARGET else row.golden
