"""The rows of nodes are found by their places, whatever pairs stand between the nodes."""

from __future__ import annotations

import numpy as np
from compare_nodes import FAULT, node

from msprobe_ms.comparison.fingerprints import norm_of
from msprobe_ms.comparison.model import Pair
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.rows_of_nodes import RowsOfNodes
from msprobe_ms.comparison.row_items import items_of
from msprobe_ms.comparison.terms import GOLDEN, TARGET


def pairs() -> list[Pair]:
    """Two calls with a counterpart, and one without between them."""
    first = node("Cell.a.Dense.forward.0", input_0=0, output_0=FAULT, figures=(3.0, 2.0))
    alone = node("Cell.b.Dense.forward.0", input_0=0, output_0=0, figures=(4.0, 5.0))
    alone.golden = None
    last = node("Cell.c.Dense.forward.0", input_0=FAULT, input_1=0, output_0=0, figures=(6.0, 7.0))
    return [first, alone, last]


def rows_of(*, with_sides: bool) -> RowsOfNodes:
    history = pairs()
    sides = items_of([row for pair in history for row in pair.rows])
    return Evidence(history, sides=sides if with_sides else None).rows


def test_rows_stand_in_the_order_of_their_nodes() -> None:
    for rows in (rows_of(with_sides=False), rows_of(with_sides=True)):
        assert rows.starts.tolist() == [0, 2, 5]
        assert rows.nodes_of(np.arange(5)).tolist() == [0, 0, 1, 1, 1]
        found = list(rows.at(np.array([1, 2, 4])))
        assert [each.module for each, _ in found] == ["a", "c", "c"]
        assert [row is each.pair.rows[place] for (each, row), place in zip(found, (1, 0, 2), strict=True)] == [True] * 3


def test_states_and_norms_are_those_of_the_rows() -> None:
    for rows in (rows_of(with_sides=False), rows_of(with_sides=True)):
        assert rows.matched_in("input").tolist() == [0, 2, 3]
        assert rows.matched_in("output").tolist() == [1, 4]
        for side in (TARGET, GOLDEN):
            expected = [norm_of(row, side) for each in rows.nodes for row in each.pair.rows]
            assert rows.norms(side, np.arange(5)).tolist() == expected == [2.0, 2.0, 7.0, 7.0, 7.0]
            (first, keys, start), (last, others, behind) = rows.keys(side)
            assert (first.module, start, last.module, behind) == ("a", 0, "c", 2)
            assert keys[start] and others[behind] and keys[start] != others[behind]


def test_no_nodes_have_no_rows() -> None:
    rows = Evidence([]).rows
    assert rows.starts.tolist() == [0]
    assert not list(rows.keys(TARGET)) and not len(rows.matched_in("input"))
