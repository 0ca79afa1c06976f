"""The values of a page: what was measured and judged of each row, in columns."""

from __future__ import annotations

from array import array
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
from msprobe_ms.support.translation import tr, translated

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
        judged = _Judged()
        for row in self.rows:
            judged.add(row, self._calls.places)
        deviations = np.frombuffer(judged.deviations, np.float64)
        missing = np.frombuffer(judged.missing, np.bool_)
        columns.add("row_flags", np.frombuffer(judged.flags, np.uint8) | self._item_flags())
        columns.add("row_deviation", rounded(floats(deviations, missing), _BITS))
        columns.add("row_tolerance", np.frombuffer(judged.tolerance, np.uint16), dictionary="tolerances")
        columns.add_json("tolerances", judged.tolerances.values)
        columns.add("row_explained", np.frombuffer(judged.explained, np.uint8))
        columns.add("row_inherited", np.frombuffer(judged.inherited, np.uint32), delta=True)
        columns.add("row_result", np.frombuffer(judged.result, np.uint8), dictionary="results")
        columns.add_json("results", judged.results.values)
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
        reasons = Codes("")
        codes = np.zeros(len(self.rows), np.uint32)
        for number, row in enumerate(self.rows):
            if row.reason and (told is None or told[number]):
                codes[number] = reasons.code(translated(row.reason))
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
    """What judging left in rows, a number each."""

    def __init__(self) -> None:
        self.flags, self.missing, self.explained, self.result = (array("B") for _ in range(4))
        self.deviations, self.tolerance, self.inherited = array("d"), array("H"), array("I")
        self.tolerances, self.explanations, self.results = Codes(None), Codes(""), Codes("")
        self._rounded: dict[float | None, int] = {None: 0}
        self._results: dict[str, int] = {}

    def add(self, row: Row, places: Mapping[str, int]) -> None:
        deviation, explained, held_to = row.deviation, row.explained, row.tolerance
        flags = code = 0
        if deviation is not None and held_to is not None:
            if explained is None:  # as most
                flags = 0 if deviation <= held_to else DIFFERS
            else:
                held_to = row.held_to
                flags = (MISRECORDED if row.misrecorded else 0) | (DIFFERS if row.differs else 0)
                if by := row.explained_by:
                    flags |= EXPLAINED
                    code = self.explanations.code(by)
        self.flags.append(flags)
        self.missing.append(deviation is None)
        self.deviations.append(deviation or 0.0)
        self.explained.append(code)
        tolerance = self._rounded.get(held_to)
        self.tolerance.append(self._tolerance(held_to) if tolerance is None else tolerance)
        self.inherited.append(places.get(row.inherited_from, -1) + 1 if row.inherited_from else 0)
        result = self._results.get(row.result)
        self.result.append(self._result(row.result) if result is None else result)

    def _tolerance(self, tolerance: float | None) -> int:
        assert tolerance is not None
        code = self._rounded[tolerance] = self.tolerances.code(float(f"{tolerance:.{_DIGITS}g}"))
        return code

    def _result(self, result: str) -> int:
        code = self._results[result] = self.results.code(result)
        return code


def _sides(rows: Sequence[Row]) -> tuple[SideOfRows, SideOfRows]:
    tables: Tables | None = next((row.places[2] for row in rows if row.places[2] is not None), None)
    numbers = array("q"), array("q")
    others: tuple[dict[int, Item], dict[int, Item]] = ({}, {})
    for place, row in enumerate(rows):
        *items, own = row.places
        for side in (0, 1):
            item = items[side]
            if item is None:
                numbers[side].append(_ABSENT)
            elif isinstance(item, int) and own is tables:
                numbers[side].append(item)
            else:
                found = row.golden if side else row.target
                assert found is not None
                others[side][place] = found
                numbers[side].append(_OTHERWISE)
    first, second = (
        SideOfRows(tables[side] if tables else None, np.frombuffer(numbers[side], np.int64), others[side])
        for side in (0, 1)
    )
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
