"""Columns of a page: whatever numbers go in come out of it again, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from report_page import Page, is_missing

from msprobe_ms.page.columns import Codes, Columns, floats, rounded


def page_of(columns: Columns) -> Page:
    import json

    index = json.dumps({"columns": columns.index})
    return Page(f'<script type="application/json" id="index">{index}</script>' + "".join(columns.elements()))


@given(arrays.arrays(st.sampled_from([np.uint8, np.uint16, np.uint32]), st.integers(0, 300)), st.booleans())
def test_whole_numbers_come_back(numbers: np.ndarray, delta: bool) -> None:
    columns = Columns()
    columns.add("a", numbers, delta=delta and numbers.dtype != np.uint8)
    assert page_of(columns).column("a").tolist() == numbers.tolist()


@given(arrays.arrays(np.float32, st.integers(0, 300)), st.data())
def test_floats_come_back_bit_by_bit(numbers: np.ndarray, data: st.DataObject) -> None:
    other = data.draw(arrays.arrays(np.float32, len(numbers)))
    columns = Columns()
    columns.add("golden", other)
    columns.add_beside("target", numbers, "golden", other)
    assert page_of(columns).column("target").tobytes() == numbers.tobytes()


def test_long_columns_are_in_chunks() -> None:
    numbers = np.arange(200_000, dtype=np.uint32)
    columns = Columns()
    columns.add("a", numbers, delta=True)
    assert len(columns.index["a"]["chunks"]) == 4  # type: ignore[arg-type]
    assert np.array_equal(page_of(columns).column("a"), numbers)


def test_the_same_numbers_make_the_same_text() -> None:
    texts = set()
    for _ in range(2):
        columns = Columns()
        columns.add("a", np.arange(1000, dtype=np.uint16))
        texts.add("".join(columns.elements()))
    assert len(texts) == 1


@given(st.lists(st.one_of(st.text(), st.none(), st.integers(-(2**53), 2**53), st.lists(st.integers(0, 9))), max_size=9))
def test_what_json_can_hold_comes_back(values: list[object]) -> None:
    columns = Columns()
    columns.add_json("a", values)
    assert page_of(columns).column("a") == values


def test_no_text_can_end_its_element() -> None:
    columns = Columns()
    columns.add_json("a", ["</script><script>alert(1)</script>", "<!--", "\ud800"])
    (element,) = columns.elements()
    assert element.count("<") == 2
    assert page_of(columns).column("a")[0].startswith("</script>")


def test_codes_are_given_in_the_order_of_their_values() -> None:
    codes = Codes("")
    assert [codes.code(value) for value in ("b", "", "a", "b")] == [1, 0, 2, 1]
    assert codes.values == ["", "b", "a"]


def test_a_number_that_is_missing_is_told_from_nan() -> None:
    found = floats([1.0, np.nan, -0.0, 1e300, 5.0], np.array([False, False, False, False, True]))
    assert is_missing(found).tolist() == [False, False, False, False, True]
    assert found[:4].tolist() == pytest.approx([1.0, np.nan, 0.0, np.inf], nan_ok=True)
    assert np.signbit(found[2])


@given(st.floats(width=32), st.integers(4, 22))
def test_rounding_keeps_so_many_bits(number: float, bits: int) -> None:
    (found,) = rounded(np.array([number], np.float32), bits).tolist()
    if np.isfinite(number) and np.isfinite(found) and abs(number) >= 2.0**-126:
        assert abs(found - number) <= abs(number) * 2.0 ** -(bits + 1)
    elif not np.isfinite(number):
        assert np.array_equal([found], [number], equal_nan=True)
