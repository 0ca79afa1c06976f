"""The items of rows in arrays, a place for each row, so that something can be asked of all of them at once."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from msprobe_ms.comparison.statistics import is_non_finite, non_finite_ends
from msprobe_ms.comparison.terms import GOLDEN, TARGET, Side
from msprobe_ms.dump.columns import ItemTable, Sort
from msprobe_ms.dump.model import Item

if TYPE_CHECKING:
    from msprobe_ms.comparison.model import Row, Tables

Mask = npt.NDArray[np.bool_]

#: Stands for an item that is not one of the tables', and for none.
_OTHERWISE, _ABSENT = -2, -1
#: Rows that are looked at together: a million at once would take a tenth of the memory of their comparison.
_AT_ONCE = 4096


class RowItems(NamedTuple):
    """The items of one side, a row each.

    ``numbers``  their numbers in ``table``; -1 where the side has none, -2 where it stands in ``others``
    ``others``   items that no table holds, by row
    """

    table: ItemTable | None
    numbers: npt.NDArray[np.int32]
    others: Mapping[int, Item]

    @property
    def present(self) -> Mask:
        return self.numbers != _ABSENT

    @property
    def stored(self) -> npt.NDArray[np.intp]:
        """The rows whose items the table holds."""
        return np.flatnonzero(self.numbers >= 0)

    @property
    def regular(self) -> Mask:
        """Whether the table holds the item with four statistics that are floats."""
        found: Mask = self.numbers >= 0
        if self.table is not None and self.table.irregular:
            found &= ~np.isin(self.numbers, np.fromiter(self.table.irregular, np.int32))
        return found

    @property
    def sorts(self) -> npt.NDArray[np.uint32]:
        """The codes of what items are; anything where the table does not hold one."""
        if self.table is None or not len(self.table):
            return np.zeros(len(self.numbers), np.uint32)
        return np.frombuffer(self.table.sorts, np.uint32)[self.numbers]

    @property
    def non_finite(self) -> Mask:
        """Whether Max or Min is NaN or infinite."""
        found = np.zeros(len(self.numbers), np.bool_)
        regular = self.regular
        if self.table is not None:
            found[regular] = ~np.frombuffer(self.table.finite, np.bool_)[self.numbers[regular]]
            for place in np.flatnonzero((self.numbers >= 0) & ~regular).tolist():
                found[place] = any(map(is_non_finite, self.table.extremes(int(self.numbers[place]))))
        for place, item in self.others.items():
            found[place] = bool(non_finite_ends(item))
        return found

    def of(self, rows: npt.NDArray[np.intp]) -> RowItems:
        """Return the items of some of the rows, in their order."""
        others = {
            new: self.others[row] for new, row in enumerate(rows.tolist() if self.others else ()) if row in self.others
        }
        return RowItems(self.table, self.numbers[rows], others)

    def sort(self, place: int) -> Sort | None:
        """What the item of one row is; None where there is none."""
        if (item := self.others.get(place)) is not None:
            return item.kind, item.type, item.dtype, item.shape, item.requires_grad
        number = int(self.numbers[place])
        return None if self.table is None or number < 0 else self.table.sort(number)


def items_of(rows: Sequence[Row]) -> tuple[RowItems, RowItems]:
    """Return the items of target and golden."""
    tables: Tables | None = next((own for row in rows if (own := row.places[2]) is not None), None)
    numbers = array("i"), array("i")
    for start in range(0, len(rows), _AT_ONCE):
        *places, owners = zip(*[row.places for row in rows[start : start + _AT_ONCE]], strict=True)
        for column, items in zip(numbers, places, strict=True):
            column.extend(
                _ABSENT if item is None else item if type(item) is int and own is tables else _OTHERWISE
                for item, own in zip(items, owners, strict=True)
            )
    target, golden = (_side(rows, side, tables, np.array(numbers[side], np.int32)) for side in (TARGET, GOLDEN))
    return target, golden


def _side(rows: Sequence[Row], side: Side, tables: Tables | None, numbers: npt.NDArray[np.int32]) -> RowItems:
    others = {}
    for place in np.flatnonzero(numbers == _OTHERWISE).tolist():
        item = rows[place].golden if side is GOLDEN else rows[place].target
        assert item is not None
        others[place] = item
    return RowItems(tables[side] if tables else None, numbers, others)


def where_sorts(sides: tuple[RowItems, RowItems], test: Callable[[Sort, Sort], bool]) -> Mask:
    """The rows with both items, whose sorts pass a test; of any two that tables hold it is asked once."""
    target, golden = sides
    found: Mask = (target.numbers >= 0) & (golden.numbers >= 0)
    if target.table is not None and golden.table is not None and found.any():
        ours, theirs = target.table.known_sorts, golden.table.known_sorts
        both = target.sorts[found].astype(np.int64) * len(theirs) + golden.sorts[found]
        known = np.unique(both)
        passed = np.array([test(ours[code // len(theirs)], theirs[code % len(theirs)]) for code in known.tolist()])
        found[found] = passed[np.searchsorted(known, both)]
    for place in {*target.others, *golden.others}:
        mine, other = target.sort(place), golden.sort(place)
        found[place] = mine is not None and other is not None and test(mine, other)
    return found
