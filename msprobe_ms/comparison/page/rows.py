"""The values of a page: what was measured and judged of each row, in columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from msprobe_ms.comparison.model import Allowance, Comparison, Row
from msprobe_ms.comparison.origin.allowances import describe_allowances
from msprobe_ms.comparison.page.calls import Calls
from msprobe_ms.comparison.reporting.plain_reasons import reasons_of
from msprobe_ms.comparison.row_deviations import RowDeviations
from msprobe_ms.comparison.row_items import RowItems
from msprobe_ms.comparison.row_verdicts import Coded
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


class Rows:
    """The rows of a comparison; ``sides`` their items.

    ``starts``    the number of the first row of each pair, and behind them how many rows there are
    ``measured``  whether more was measured of rows than how far apart they are
    """

    def __init__(self, comparison: Comparison, calls: Calls) -> None:
        self.starts = np.cumsum([0, *(len(pair.rows) for pair in comparison.pairs)])
        self.rows, self.sides, self.deviations = comparison.rows, comparison.sides, comparison.deviations
        self.measured = bool(comparison.measured)
        self._comparison, self._verdicts = comparison, comparison.verdicts
        self._calls = calls

    def __len__(self) -> int:
        return len(self.rows)

    def add_to(self, columns: Columns, told: npt.NDArray[np.bool_] | None) -> list[str]:
        """Add the columns of rows; return the names of the explanations.

        ``told``: the rows whose reasons are told; None for all.
        """
        judged, places = _Judged(self._verdicts.explained, self.deviations), self._calls.places
        results, inherited = self._verdicts.results, self._verdicts.inherited
        begun = np.array([places.get(name, -1) + 1 if name else 0 for name in inherited.values], np.uint32)
        columns.add("row_flags", judged.flags | self._item_flags())
        columns.add("row_deviation", rounded(floats(self.deviations.values, ~self.deviations.known), _BITS))
        columns.add("row_tolerance", judged.tolerance, dictionary="tolerances")
        columns.add_json("tolerances", judged.tolerances.values)
        columns.add("row_explained", judged.explained)
        columns.add("row_inherited", begun[inherited.codes], delta=True)
        columns.add("row_result", results.codes.astype(np.uint8), dictionary="results")
        columns.add_json("results", results.values)
        self._add_reasons(columns, told)
        slots = Codes("")
        for side, name in zip(self.sides, ("row_slot", "row_golden_slot"), strict=True):
            columns.add(name, _slots(side, slots), dictionary="slots")
        columns.add_json("slots", slots.values)
        return [translated(tr(str(each))) for each in judged.explanations]

    def add_asked(self, columns: Columns, asked: Mapping[Row, Sequence[tuple[str, Allowance | None]]]) -> None:
        """Add what each explanation that was asked of a row allowed, of those rows of which it is known."""
        tell = translator()
        told = [
            {"row": number, "text": tell(describe_allowances(row, asked[row]))}
            for number, row in (enumerate(self.rows) if asked else ())
            if row in asked
        ]
        if told:
            columns.add_json("asked", told)

    def _add_reasons(self, columns: Columns, told: npt.NDArray[np.bool_] | None) -> None:
        reasons, tell = Codes(""), translator()
        codes = np.zeros(len(self.rows), np.uint32)
        places = np.arange(len(self.rows)) if told is None else np.flatnonzero(told)
        if tell is str:
            said = reasons_of(self._comparison, places)
        else:
            said = [tell(self.rows[number].reason) for number in places.tolist()]
        codes[places] = reasons.codes(map(str, said))
        columns.add("row_reason", codes, dictionary="reasons")
        columns.add_json("reasons", reasons.values)

    def _item_flags(self) -> npt.NDArray[np.uint8]:
        """What the items themselves say: which side has one, which is a tensor, which is not finite."""
        flags = np.zeros(len(self.rows), np.uint8)
        ends = (NON_FINITE, GOLDEN_NON_FINITE)
        for side, present, non_finite in zip(self.sides, (IN_TARGET, IN_GOLDEN), ends, strict=True):
            flags[side.present] |= present
            tensors = _tensors(side)
            flags[tensors] |= TENSOR
            flags[tensors & side.non_finite] |= non_finite
        return flags


class _Judged:
    """What measuring and the search for origins left in rows, in columns; ``explanations`` are named in it."""

    def __init__(self, explained: Coded, deviations: RowDeviations) -> None:
        codes = np.where(deviations.known & ~np.isnan(deviations.held_to), explained.codes, 0)
        kept = np.union1d(0, np.flatnonzero(np.bincount(codes)))  # 0 is none
        self.explanations = [explained.values[code] for code in kept]
        self.explained = np.searchsorted(kept, codes).astype(np.uint8)
        self.flags = np.where(deviations.differs, DIFFERS, 0).astype(np.uint8)
        self.flags[self.explained > 0] |= EXPLAINED
        self.flags[deviations.misrecorded] |= MISRECORDED
        bounds, codes = _distinct(deviations.held_to)
        self.tolerances = Codes(None)
        told = self.tolerances.codes(None if each != each else float(f"{each:.{_DIGITS}g}") for each in bounds)
        self.tolerance = np.array(told, np.uint16)[codes]


def _distinct(numbers: npt.NDArray[np.float64]) -> tuple[list[float], npt.NDArray[np.intp]]:
    """The numbers that there are, in the order in which they come first, and the place of each among them."""
    found, first, codes = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return found[order].tolist(), np.argsort(order)[codes]


def _slots(side: RowItems, slots: Codes) -> npt.NDArray[np.uint16]:
    """What follows the entry in the name of each item."""
    found = np.zeros(len(side.numbers), np.uint16)
    if side.table is not None:
        codes = np.array([slots.code(text.removeprefix(".")) for text in side.table.suffixes] or [0], np.uint16)
        stored = side.stored
        found[stored] = codes[np.frombuffer(side.table.places, np.uint32)[side.numbers[stored]]]
    for row, item in side.others.items():
        found[row] = slots.code(item.suffix)
    return found


def _tensors(side: RowItems) -> npt.NDArray[np.bool_]:
    """The rows whose items are tensors."""
    found = np.zeros(len(side.numbers), np.bool_)
    if side.table is not None:
        stored = side.stored
        tensor = np.array([sort[0] == "tensor" for sort in side.table.known_sorts] or [False])
        found[stored] = tensor[np.frombuffer(side.table.sorts, np.uint32)[side.numbers[stored]]]
    for row, item in side.others.items():
        found[row] = item.kind == "tensor"
    return found
