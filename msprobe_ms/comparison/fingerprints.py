"""Know a recorded tensor again wherever it was recorded: by its size and its four statistics, in whichever layout."""

from __future__ import annotations

from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.statistics import element_count
from msprobe_ms.comparison.terms import GOLDEN, TARGET, Side
from msprobe_ms.dump.model import Item

#: What tells one recorded tensor from another: how many elements it has, Max, Min, Mean and Norm.
Fingerprint = tuple[object, ...]
#: The same of target and golden.
Fingerprints = tuple[Fingerprint | None, Fingerprint | None]


def fingerprint(row: Row, side: Side = TARGET) -> Fingerprint | None:
    """Return size, Max, Min, Mean and Norm of one side of a row; None for no tensor, or one constant as many are."""
    numbers = row.numbers
    if numbers is not None:
        tables, ours, theirs = numbers
        table, number = tables[side], theirs if side else ours
        if number in table.irregular:
            return None
        statistics, first = table.statistics, 4 * number
        maximum, minimum = statistics[first], statistics[first + 1]
        if maximum == minimum:
            return None
        return table.elements(number), maximum, minimum, statistics[first + 2], statistics[first + 3]
    item = row.golden if side else row.target
    return None if item is None else fingerprint_of(item)


def fingerprint_of(item: Item) -> Fingerprint | None:
    """Return the same of an item that is at hand, also where not all of its statistics are floats."""
    if item.kind != "tensor" or item.norm is None or item.maximum == item.minimum:
        return None
    return element_count(item), item.maximum, item.minimum, item.mean, item.norm


def fingerprints(row: Row) -> Fingerprints:
    """Return the fingerprints of both sides of a row."""
    return fingerprint(row, TARGET), fingerprint(row, GOLDEN)


def norm_of(row: Row, side: Side = TARGET) -> object:
    """Return the last part of the fingerprint, for which no item need be made."""
    if (stored := row.stored(side)) is not None:
        table, number = stored
        irregular = table.irregular.get(number)
        return table.statistics[4 * number + 3] if irregular is None else irregular[3]
    item = row.golden if side else row.target
    return item.norm if item is not None else None
