"""The values of a page: what was measured and judged of each row, in columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from msprobe_ms.comparison.model import Allowance, Pair, Row, Tables
from msprobe_ms.comparison.origin.allowances import describe_allowances
from msprobe_ms.comparison.page.calls import Calls
from msprobe_ms.comparison.statistics import is_non_finite
from msprobe_ms.dump.columns import ItemTable
from msprobe_ms.dump.model import Item
from msprobe_ms.page.columns import Codes, Columns, floats, rounded
from msprobe_ms.support.translation import tr, translated, translator

#: Bits of ``row_flags``.
IN_TARGET, IN_GOLDEN, DIFFERS, EXPLAINED, MISRECORDED, NON_FINITE, GOLDEN_NON_FINITE, TENSOR = (
    1 << bit for bit in range(8)
)
#: Tolerances are told in so many digits: there are many that differ in the last alone.
_DIGITS = 4
#: Bits of the fraction of a deviation: enough for as many digits.
_BITS = 15
#: Stands for an item that is not one of the tables', and for none.
_OTHERWISE, _ABSENT = -2, -1


class SideOfRows(NamedTuple):
    """The items of one side, a row each.

    ``numbers``  their numbers in ``table``; -1 where the side has none, -2 where it stands in ``others``
    ``others``   items that no table holds, by row
    """

    table: ItemTable | None
    numbers: npt.NDArray[np.int64]
    others: Mapping[int, Item]

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        return self.numbers != _ABSENT

    @property
    def stored(self) -> npt.NDArray[np.intp]:
        """The rows whose items the table holds."""
        return np.flatnonzero(self.numbers >= 0)


class Rows:
    """The rows of pairs, in their order; ``sides`` their items.

    ``starts``  the number of the first row of each pair, and behind them how many rows there are
    """

    def __init__(self, pairs: Sequence[Pair], calls: Calls) -> None:
        self.starts = np.cumsum([0, *(len(pair.rows) for pair in pairs)])
        self.rows = [row for pair in pairs for row in pair.rows]
        self.sides = _sides(self.rows)
        self._calls = calls

    def __len__(self) -> int:
        return len(self.rows)

    def add_to(self, columns: Columns, told: npt.NDArray[np.bool_] | None) -> list[str]:
        """Add the columns of rows; return the names of the explanations.

        ``told``: the rows whose reasons are told; None for all.
        """
        judged, results, places = _Judged(self.rows), Codes(""), self._calls.places
        begun = [places.get(row.inherited_from, -1) + 1 if row.inherited_from else 0 for row in self.rows]
        columns.add("row_flags", judged.flags | self._item_flags())
        columns.add("row_deviation", rounded(floats(judged.deviations, judged.missing), _BITS))
        columns.add("row_tolerance", np.array(judged.tolerance, np.uint16), dictionary="tolerances")
        columns.add_json("tolerances", judged.tolerances.values)
        columns.add("row_explained", judged.explained)
        columns.add("row_inherited", np.array(begun, np.uint32), delta=True)
        columns.add(
            "row_result", np.array(results.codes(row.result for row in self.rows), np.uint8), dictionary="results"
        )
        columns.add_json("results", results.values)
        self._add_reasons(columns, told)
        slots = Codes("")
        for side, name in zip(self.sides, ("row_slot", "row_golden_slot"), strict=True):
            columns.add(name, _slots(side, slots), dictionary="slots")
        columns.add_json("slots", slots.values)
        return [translated(tr(str(each))) for each in judged.explanations.values]

    def add_asked(self, columns: Columns, asked: Mapping[Row, Sequence[tuple[str, Allowance | None]]]) -> None:
        """Add what each explanation that was asked of a row allowed, of those rows of which it is known."""
        told = [
            {"row": number, "text": translated(describe_allowances(row, asked[row]))}
            for number, row in (enumerate(self.rows) if asked else ())
            if row in asked
        ]
        if told:
            columns.add_json("asked", told)

    def _add_reasons(self, columns: Columns, told: npt.NDArray[np.bool_] | None) -> None:
        reasons, tell = Codes(""), translator()
        codes = np.zeros(len(self.rows), np.uint32)
        for number in range(len(self.rows)) if told is None else np.flatnonzero(told).tolist():
            if reason := self.rows[number].reason:
                codes[number] = reasons.code(tell(reason))
        columns.add("row_reason", codes, dictionary="reasons")
        columns.add_json("reasons", reasons.values)

    def _item_flags(self) -> npt.NDArray[np.uint8]:
        """What the items themselves say: which side has one, which is a tensor, which is not finite."""
        flags = np.zeros(len(self.rows), np.uint8)
        ends = (NON_FINITE, GOLDEN_NON_FINITE)
        for side, present, non_finite in zip(self.sides, (IN_TARGET, IN_GOLDEN), ends, strict=True):
            flags[side.present] |= present
            tensors, bad = _tensors(side)
            flags[tensors] |= TENSOR
            flags[bad] |= non_finite
        return flags


class _Judged:
    """What measuring and the search for origins left in rows, in columns."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.tolerances, self.explanations = Codes(None), Codes("")
        deviations, held_to = [row.deviation for row in rows], [row.tolerance for row in rows]
        self.deviations, bounds = np.array(deviations, np.float64), np.array(held_to, np.float64)
        self.missing = np.array([each is None for each in deviations], np.bool_)
        compared = ~self.missing & np.array([each is not None for each in held_to], np.bool_)
        flags = bytearray(np.where(compared & ~(self.deviations <= bounds), DIFFERS, 0).astype(np.uint8))
        explained = bytearray(len(rows))
        for number, row in enumerate(rows):
            if row.explained is not None and compared[number]:
                held_to[number] = row.held_to
                flags[number] = (MISRECORDED if row.misrecorded else 0) | (DIFFERS if row.differs else 0)
                if by := row.explained_by:
                    flags[number] |= EXPLAINED
                    explained[number] = self.explanations.code(by)
        self.flags, self.explained = np.frombuffer(flags, np.uint8), np.frombuffer(explained, np.uint8)
        exact = Codes()
        codes = exact.codes(held_to)
        told = self.tolerances.codes(each and float(f"{each:.{_DIGITS}g}") for each in exact.values)
        self.tolerance = [told[code] for code in codes]


def _sides(rows: Sequence[Row]) -> tuple[SideOfRows, SideOfRows]:
    targets, goldens, owners = zip(*[row.places for row in rows], strict=True) if rows else ((), (), ())
    tables: Tables | None = next((own for own in owners if own is not None), None)
    numbers, others = [], [dict[int, Item](), dict[int, Item]()]
    for side, items in enumerate((targets, goldens)):
        places = [
            _ABSENT if item is None else item if type(item) is int and own is tables else _OTHERWISE
            for item, own in zip(items, owners, strict=True)
        ]
        numbers.append(np.array(places, np.int64))
        for place in np.flatnonzero(numbers[side] == _OTHERWISE).tolist():
            found = rows[place].golden if side else rows[place].target
            assert found is not None
            others[side][place] = found
    first, second = (SideOfRows(tables[side] if tables else None, numbers[side], others[side]) for side in (0, 1))
    return first, second


def _slots(side: SideOfRows, slots: Codes) -> npt.NDArray[np.uint16]:
    """What follows the entry in the name of each item."""
    found = np.zeros(len(side.numbers), np.uint16)
    if side.table is not None:
        codes = np.array([slots.code(text.removeprefix(".")) for text in side.table.suffixes] or [0], np.uint16)
        stored = side.stored
        found[stored] = codes[np.frombuffer(side.table.places, np.uint32)[side.numbers[stored]]]
    for row, item in side.others.items():
        found[row] = slots.code(item.suffix)
    return found


def _tensors(side: SideOfRows) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The rows whose items are tensors, and those whose extremes are not finite."""
    kinds, bad = np.zeros(len(side.numbers), np.bool_), np.zeros(len(side.numbers), np.bool_)
    if side.table is not None:
        stored = side.stored
        numbers = side.numbers[stored]
        tensor = np.array([sort[0] == "tensor" for sort in side.table.known_sorts] or [False])
        kinds[stored] = tensor[np.frombuffer(side.table.sorts, np.uint32)[numbers]]
        extremes = np.frombuffer(side.table.statistics, np.float64).reshape(-1, 4)[:, :2]
        bad[stored] = ~np.isfinite(extremes[numbers]).all(axis=1)
        for place in np.flatnonzero(np.isin(numbers, list(side.table.irregular))):
            bad[stored[place]] = any(map(is_non_finite, side.table.irregular[numbers[place]][:2]))
    for row, item in side.others.items():
        kinds[row] = item.kind == "tensor"
        bad[row] = any(map(is_non_finite, (item.maximum, item.minimum)))
    return np.flatnonzero(kinds), np.flatnonzero(bad & kinds)
