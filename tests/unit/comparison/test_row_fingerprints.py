"""The numbers of many fingerprints tell tensors apart exactly as the fingerprints themselves do."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from compare_parts import null, tensor, value
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.comparison.fingerprints import fingerprint_of, norm_of
from msprobe_ms.comparison.model import Row
from msprobe_ms.comparison.row_fingerprints import keys_of, norms_of
from msprobe_ms.comparison.row_items import RowItems, items_of
from msprobe_ms.dump.columns import ItemTable
from msprobe_ms.dump.model import Item

_FIGURES = st.sampled_from((0.0, -0.0, 1.0, -1.0, 2.5, 1e-300, math.inf, math.nan))
_ITEMS = st.lists(st.tuples(st.sampled_from((4, 8)), _FIGURES, _FIGURES, _FIGURES, _FIGURES), max_size=6)


def item(elements: int, *figures: float | int | None) -> Item:
    maximum, minimum, mean, norm = figures
    return Item(
        "a", "output", ("0",), kind="tensor", type="t", dtype="Float32", shape=(elements,), maximum=maximum,
        minimum=minimum, mean=mean, norm=norm,
    )  # fmt: skip


def in_table(*items: Item) -> RowItems:
    """The items as a dump that was read holds them."""
    table = ItemTable()
    table.begin("a")
    for each in items:
        sort = each.kind, each.type, each.dtype, each.shape, each.requires_grad
        table.add((each.state, each.path, each.keyword), sort, (each.maximum, each.minimum, each.mean, each.norm))
    return items_of([Row(number, None, tables=(table, table)) for number in range(len(items))])[0]


def by_themselves(*items: Item) -> RowItems:
    return items_of([Row(each, None) for each in items])[0]


def told(each: Item) -> tuple[object, ...] | None:
    """Its fingerprint, with one text for all NaN, which are no two equal."""
    found = fingerprint_of(each)
    return found and tuple("nan" if part != part else part for part in found)


@given(_ITEMS)
def test_keys_are_equal_where_fingerprints_are(figures: list[tuple[int, float, float, float, float]]) -> None:
    items = [item(*each) for each in figures]
    for held in (in_table(*items), by_themselves(*items)):
        known = list(zip(items, keys_of(held).tolist(), strict=True))
        assert [bool(key) for _, key in known] == [told(each) is not None for each, _ in known]
        for (one, key), (other, other_key) in product(known, repeat=2):
            assert (key == other_key) == (told(one) == told(other))


def test_a_tensor_has_one_key_wherever_it_is_held() -> None:
    tensors = [tensor("output.0", np.arange(6, dtype=np.float32) + apart) for apart in range(3)]
    assert keys_of(in_table(*tensors)).tolist() == keys_of(by_themselves(*tensors)).tolist()
    assert len(set(keys_of(in_table(*tensors)).tolist())) == 3


def test_figures_that_are_no_floats_are_known_among_items_alone() -> None:
    whole, same = item(4, 5, 0, 2.5, 9.0), item(4, 5.0, 0.0, 2.5, 9.0)
    assert len(set(keys_of(by_themselves(whole, same)).tolist()) - {0}) == 1
    assert keys_of(in_table(whole)).tolist() == [0]  # as `fingerprint` knows none of them


def test_norms_are_those_of_the_items() -> None:
    items = [tensor("output.0", np.arange(6.0)), value("output.1", 3), null("output.2"), item(4, 5, 0, 2, 9)]
    expected = [norm_of(Row(each, None)) for each in items]
    for held in (in_table(*items), by_themselves(*items)):
        assert [None if norm != norm else norm for norm in norms_of(held).tolist()] == expected


def test_a_whole_number_beyond_all_floats_is_infinite() -> None:
    huge, large = item(4, 10**400, 0, 1, 10**400), item(4, math.inf, 0.0, 1.0, math.inf)
    assert len(set(keys_of(by_themselves(huge, large)).tolist()) - {0}) == 1
    assert norms_of(by_themselves(huge)).tolist() == norms_of(in_table(huge)).tolist() == [math.inf]
    assert keys_of(in_table(item(10**400, 2.0, 1.0, 1.5, 4.0)))[0] != 0
