"""A tensor is known again by its size and its four statistics, however it is stored and laid out."""

from __future__ import annotations

import numpy as np
import pytest
from compare_parts import null, tensor, value

from msprobe_ms.comparison.fingerprints import fingerprint, fingerprint_of, fingerprints, norm_of
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.terms import GOLDEN, TARGET
from msprobe_ms.dump.columns import ItemTable
from msprobe_ms.dump.model import Item

VALUES = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7


def test_another_layout_leaves_it_and_another_value_does_not() -> None:
    known = fingerprint_of(tensor("input.0", VALUES))
    assert known is not None and known == fingerprint_of(tensor("output.1", VALUES.transpose(2, 0, 1).reshape(12, 2)))
    assert known != fingerprint_of(tensor("input.0", VALUES[:1]))
    assert known != fingerprint_of(tensor("input.0", VALUES + np.float32([0, 0, 0, 1])))


@pytest.mark.parametrize("item", [tensor("input.0", np.ones(5, np.float32)), value("input.0", 3), null("input.0")])
def test_nothing_tells_constants_and_plain_values_from_others(item: Item) -> None:
    assert fingerprint_of(item) is None


def column_of(item: Item) -> ItemTable:
    """A table that holds the item alone."""
    table = ItemTable()
    table.begin(item.entry)
    sort = item.kind, item.type, item.dtype, item.shape, item.requires_grad
    statistics = item.maximum, item.minimum, item.mean, item.norm
    table.add((item.state, item.path, item.keyword), sort, statistics)
    return table


def test_rows_of_columns_and_rows_of_items_agree() -> None:
    ours, theirs = (tensor("output.0", VALUES + np.float32(apart)) for apart in (0, 1))
    of_columns = Row(0, 0, tables=(column_of(ours), column_of(theirs)))
    of_items = Row(ours, theirs)
    assert fingerprints(of_columns) == fingerprints(of_items) == (fingerprint_of(ours), fingerprint_of(theirs))
    assert [fingerprint(of_items, side) for side in (TARGET, GOLDEN)] == [fingerprint_of(ours), fingerprint_of(theirs)]
    for row in (of_columns, of_items):
        assert (norm_of(row), norm_of(row, GOLDEN)) == (ours.norm, theirs.norm)


def test_statistics_that_are_no_floats_are_kept_apart_from_the_columns() -> None:
    whole = tensor("output.0", np.arange(6), maximum=5, minimum=0)
    row = Row(0, 0, tables=(column_of(whole), column_of(whole)))
    assert norm_of(row) == whole.norm
    assert fingerprint(row) is None and fingerprint_of(whole) is not None
