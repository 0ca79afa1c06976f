"""Measure tensors whose statistics stand in the dumps' columns, many rows at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from msprobe_ms.comparison.measuring.deviation import StatisticColumns
from msprobe_ms.comparison.model import Pair, Row, Tables
from msprobe_ms.comparison.row_items import RowItems, items_of
from msprobe_ms.dump.columns import ItemTable

#: Rows whose statistics are measured at once: their columns stay in a core's cache.
_AT_ONCE = 8192


class Sorts(NamedTuple):
    """What is alike for all rows of two sorts of tensors: whether values can be compared, the bound, the dtypes.

    ``summed``  one is the sum of the other over an axis, as gradients are of a tensor that one side broadcasts: of
                these nothing is compared
    ``readable``  both have a dtype and a shape
    """

    comparable: bool
    summed: bool
    bound: float
    dtypes: tuple[str | None, str | None]
    readable: bool


#: What tells of two sorts of items, by their codes, and of whether these are gradients.
SortsOf = Callable[[int, int, bool], Sorts]


class ManyRows:
    """The rows of pairs of calls whose items are tensors with four statistics.

    ``sides``   the items of all rows
    ``tables``  the columns that hold them; None where there are none
    """

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self._rows = [row for pair in pairs for row in pair.rows]
        self._counts = np.array([len(pair.rows) for pair in pairs], np.intp)
        self.sides: tuple[RowItems, RowItems] = items_of(self._rows)
        self.tables: Tables | None = next((numbers[0] for row in self._rows if (numbers := row.numbers)), None)
        target, golden = self.sides
        self._numbers = target.numbers.copy(), golden.numbers.copy()
        paired = np.array([pair.matched for pair in pairs], np.bool_).repeat(self._counts)
        found = paired & target.regular & golden.regular & self._are_of(target.table, golden.table)
        for place in np.flatnonzero(paired & ~found & target.present & golden.present).tolist() if self.tables else ():
            if (numbers := self._rows[place].floats_in(self.tables)) is not None:
                found[place] = True
                for side, number in zip(self._numbers, numbers, strict=True):
                    side[place] = number
        self._found = np.flatnonzero(found)

    def _are_of(self, target: ItemTable | None, golden: ItemTable | None) -> bool:
        return self.tables is not None and self.tables[0] is target and self.tables[1] is golden

    def measure(self, floors: Mapping[int, float]) -> None:
        """Fill their deviations; ``floors``: the least scales of some of the rows, by their places among all."""
        assert self.tables is not None
        columns = StatisticColumns(*self.tables)
        least = np.zeros(len(self._rows))
        least[list(floors)] = list(floors.values())
        for places in self._blocks():
            ours, theirs = (side[places] for side in self._numbers)
            deviations = columns.deviations(ours, theirs, least[places])
            for place, deviation in zip(places.tolist(), deviations, strict=True):
                self._rows[place].deviation = deviation

    def hold(self, gradients: Sequence[bool], sorts_of: SortsOf) -> None:
        """Hold them to the bounds of their sorts; ``gradients``: of each pair whether it is of backward."""
        assert self.tables is not None
        gradient = np.array(gradients, np.bool_).repeat(self._counts)
        width, known = len(self.tables[1].known_sorts), dict[int, Sorts]()
        for places in self._blocks():
            target, golden = (
                np.frombuffer(table.sorts, np.uint32)[side[places]].astype(np.int64)
                for table, side in zip(self.tables, self._numbers, strict=True)
            )
            keys = (target * width + golden) * 2 + gradient[places]
            for place, key in zip(places.tolist(), keys.tolist(), strict=True):
                if (sorts := known.get(key)) is None:
                    sorts = known[key] = sorts_of(key // 2 // width, key // 2 % width, key % 2 == 1)
                hold(self._rows[place], sorts)

    def _blocks(self) -> Iterator[npt.NDArray[np.intp]]:
        """Their places, as many at a time as are measured at once."""
        return (self._found[start : start + _AT_ONCE] for start in range(0, len(self._found), _AT_ONCE))

    def left(self) -> npt.NDArray[np.bool_]:
        """Whether each pair has rows that are none of these."""
        done = np.zeros(len(self._rows), np.intp)
        done[self._found] = 1
        total = np.concatenate(([0], np.cumsum(done)))
        ends = np.cumsum(self._counts)
        found: npt.NDArray[np.bool_] = total[ends] - total[ends - self._counts] < self._counts
        return found


def hold(row: Row, sorts: Sorts) -> None:
    """Hold a row to the bound of its sorts, unless they cannot be compared."""
    if sorts.summed:
        row.deviation = row.tolerance = None
        return
    if not sorts.readable:
        row.unread = True
    if not sorts.comparable:
        row.deviation = float("inf")
    row.tolerance = sorts.bound
