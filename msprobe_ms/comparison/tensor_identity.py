"""What tells one recorded tensor from another: its shape and its four statistics."""

from __future__ import annotations

from msprobe_ms.comparison.model import Row
from msprobe_ms.dump.model import Item

Fingerprint = tuple[object, ...]
TARGET, GOLDEN = 0, 1


def fingerprint(row: Row, side: int = TARGET) -> Fingerprint | None:
    """Return shape, Max, Min, Mean and Norm of one side of a row; None for no tensor, or one constant as many are."""
    numbers = row.numbers
    if numbers is not None:
        tables, ours, theirs = numbers
        table, number = tables[side], theirs if side else ours
        if number in table.irregular:
            return None
        maximum, minimum, mean, norm = table.statistics[4 * number : 4 * number + 4]
        return None if maximum == minimum else (table.sort(number)[3], maximum, minimum, mean, norm)
    item = row.golden if side else row.target
    return None if item is None else fingerprint_of(item)


def fingerprint_of(item: Item) -> Fingerprint | None:
    """Return the same of an item that is at hand."""
    if item.kind != "tensor" or item.norm is None or item.maximum == item.minimum:
        return None
    return item.shape, item.maximum, item.minimum, item.mean, item.norm


def norm_of(row: Row, side: int = TARGET) -> object:
    """Return the last part of the fingerprint, which is had at once."""
    numbers = row.numbers
    if numbers is not None:
        tables, ours, theirs = numbers
        return tables[side].statistics[4 * (theirs if side else ours) + 3]
    item = row.golden if side else row.target
    return item.norm if item is not None else None
