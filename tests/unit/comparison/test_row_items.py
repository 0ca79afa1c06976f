"""Tests that the items of rows in arrays are those that the rows hold, wherever these come from."""

from __future__ import annotations

import math

import numpy as np

from msprobe_ms.comparison.model import Row, Tables
from msprobe_ms.comparison.row_items import items_of, where_sorts
from msprobe_ms.dump.columns import NULL, FourStatistics, ItemTable, Sort
from msprobe_ms.dump.model import Item

_FLOATS: Sort = ("tensor", "t", "Float32", (4,), None)
_HALVES: Sort = ("tensor", "t", "Float16", (4,), None)
_ONES: FourStatistics = (1.0, 1.0, 1.0, 1.0)


def _table(*items: tuple[Sort, FourStatistics]) -> ItemTable:
    table = ItemTable()
    table.begin("Functional.relu.0.forward")
    for number, (sort, statistics) in enumerate(items):
        table.add(("output", (str(number),), False), sort, statistics)
    return table


def _rows() -> tuple[list[Row], Tables]:
    """Equal, of other dtypes, one with an integer infinity beside floats, nothing on one side, items of their own."""
    infinite: FourStatistics = (math.inf, 1, 1, 1)
    target = _table((_FLOATS, _ONES), (_HALVES, _ONES), (_FLOATS, infinite), (NULL, (None,) * 4))
    golden = _table((_FLOATS, _ONES), (_FLOATS, _ONES), (_FLOATS, _ONES))
    tables = target, golden
    own = Item(
        "a", "output", (), False, "tensor", "t", "Float16", (4,), math.nan, 1.0, 1.0, 1.0, None, None, None, None
    )
    rows = [Row(number, number, tables=tables) for number in range(3)]
    return [*rows, Row(3, None, tables=tables), Row(own, 0, tables=tables), Row(None, own)], tables


def test_each_row_has_its_item_or_none() -> None:
    rows, tables = _rows()
    for side, items in enumerate(items_of(rows)):
        assert items.table is tables[side]
        held = [row.golden if side else row.target for row in rows]
        assert items.present.tolist() == [item is not None for item in held]
        sorts = [item and (item.kind, item.type, item.dtype, item.shape, item.requires_grad) for item in held]
        assert [items.sort(place) for place in range(len(rows))] == sorts


def test_what_is_not_four_floats_is_told_from_the_rest() -> None:
    target, golden = items_of(_rows()[0])
    assert target.regular.tolist() == [True, True, False, False, False, False]
    assert golden.regular.tolist() == [True, True, True, False, True, False]
    assert target.non_finite.tolist() == [False, False, True, False, True, False]
    assert golden.non_finite.tolist() == [False, False, False, False, False, True]


def test_some_rows_are_items_of_their_own() -> None:
    some = items_of(_rows()[0])[0].of(np.array([4, 0]))
    assert (some.numbers.tolist()[1], some.sort(0)) == (0, _HALVES)
    assert some.present.all()


def test_two_sorts_are_compared_once_however_many_rows_have_them() -> None:
    asked: list[tuple[Sort, Sort]] = []

    def differ(mine: Sort, other: Sort) -> bool:
        asked.append((mine, other))
        return mine[2] != other[2]

    rows, tables = _rows()
    rows += [Row(0, 0, tables=tables) for _ in range(100)]
    found = where_sorts(items_of(rows), differ)
    assert np.flatnonzero(found).tolist() == [1, 4]
    assert len(asked) == 3


def test_no_rows_have_no_items() -> None:
    sides = items_of([])
    assert [len(side.numbers) for side in sides] == [0, 0]
    assert not len(where_sorts(sides, lambda mine, other: True))
