"""Items kept in columns come out as they went in."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.comparison.measuring.deviation import statistic_deviation
from msprobe_ms.comparison.measuring.deviation_columns import StatisticColumns
from msprobe_ms.dump.columns import ItemSlice, ItemTable
from msprobe_ms.dump.model import Item

FIGURES = st.floats() | st.integers() | st.booleans() | st.text(max_size=3) | st.none()
SORTS = st.tuples(
    st.sampled_from(["tensor", "value", "null"]), st.text(max_size=3), st.sampled_from(["Float32", "Int64", None]),
    st.none() | st.lists(st.integers(0, 5), max_size=3).map(tuple) | st.text(max_size=3), st.none() | st.booleans(),
)  # fmt: skip
PLACES = st.tuples(
    st.sampled_from(["input", "output"]), st.lists(st.text(max_size=2), max_size=2).map(tuple), st.booleans()
)
ITEMS = st.tuples(
    PLACES, SORTS, st.tuples(FIGURES, FIGURES, FIGURES, FIGURES), st.none() | st.text(max_size=3),
    st.none() | st.text(max_size=3),
)  # fmt: skip


@given(st.lists(ITEMS, max_size=12))
def test_items_come_out_as_they_went_in(added: list) -> None:
    table = ItemTable()
    for number, (place, sort, figures, checksum, file) in enumerate(added):
        table.begin(f"entry{number}")
        table.add(place, sort, figures, checksum, file)
    for number, (place, sort, figures, checksum, file) in enumerate(added):
        expected = Item(f"entry{number}", *place, *sort[:4], *figures, sort[4], checksum, file)
        assert repr(table.item(number)) == repr(expected)
        assert repr(table.item(number)) == repr(expected)  # once more, kept
        assert (table.state(number), table.sort(number)) == (place[0], sort)
    assert len(table) == len(added)


def test_more_items_than_are_kept_at_hand() -> None:
    table = ItemTable()
    table.begin("entry")
    for number in range(2000):
        table.add(("output", (str(number),), False), ("tensor", "t", "Float32", (number,), None), (float(number),) * 4)
    items = ItemSlice(table, 100, 1900)
    assert [item.maximum for item in items] == [float(number) for number in range(100, 1900)]
    assert [items[place].maximum for place in (0, 300, 0, -1)] == [100.0, 400.0, 100.0, 1899.0]
    assert [item.maximum for item in items[1::600]] == [101.0, 701.0, 1301.0]


WIDE = st.floats(width=32) | st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 1e300, 5e-324])


@given(
    st.lists(
        st.tuples(
            *[WIDE] * 8, st.sampled_from([(), (0,), (3,), (4, 5), "text"]),
            st.sampled_from(["Float32", "Int64", "torch.float16"]), st.sampled_from([0.0, 1e-3, 10.0]),
        ),
        min_size=1, max_size=8,
    )
)  # fmt: skip
def test_deviations_by_column_are_those_one_by_one(rows: list) -> None:
    tables = ItemTable(), ItemTable()
    for table in tables:
        table.begin("entry")
    floors = []
    for *figures, shape, dtype, floor in rows:
        for side, table in enumerate(tables):
            sort = ("tensor", "t", dtype, shape, None)
            table.add(("output", (), False), sort, tuple(figures[4 * side : 4 * side + 4]))
        floors.append(floor)
    numbers = range(len(rows))
    found = StatisticColumns(*tables).deviations(numbers, numbers, floors)
    expected = [
        statistic_deviation(tables[0].item(number), tables[1].item(number), floor)
        for number, floor in zip(numbers, floors, strict=True)
    ]
    assert found == pytest.approx(expected, rel=1e-14, nan_ok=True)
    assert not np.isnan(found).any()
