"""Tests that what was said of rows in arrays is what each of the rows says."""

from __future__ import annotations

import numpy as np

from msprobe_ms.comparison.model import Allowance, Effect, Row, Said
from msprobe_ms.comparison.row_verdicts import verdicts_of


def _said(row: Row) -> str:
    return f"made of {row.inherited_from}"


def _rows() -> list[Row]:
    rows = [Row(None, None, None, 0.5, 1e-6) for _ in range(7)]
    for number, row in enumerate(rows):
        row.result, row.reason, row.inherited_from = (
            ("", "agrees", "inherited")[number % 3],
            "text",
            f"call {number % 2}",
        )
    for row, effect in zip(rows, Effect, strict=False):
        row.explained = Allowance(f"reason {effect}", 1.0, effect=effect)
    rows[5].said, rows[6].reason, rows[6].inherited_from = Said("agrees", _said), "", ""
    return rows


def test_verdicts_are_those_of_the_rows() -> None:
    rows = _rows()
    verdicts, everywhere = verdicts_of(rows), np.arange(len(rows))
    assert verdicts.results.at(everywhere) == [row.result for row in rows]
    assert verdicts.inherited.at(everywhere) == [row.inherited_from for row in rows]
    assert verdicts.explained.at(everywhere) == [row.explained_by for row in rows]
    assert verdicts.reasons.at(np.array([0, 5, 6])) == ["text", _said, ""]


def test_values_come_once_and_nothing_is_the_first() -> None:
    assert verdicts_of(_rows()).inherited.values == ["", "call 0", "call 1"]
    assert verdicts_of([]).results.values == [""]


def test_a_row_keeps_what_was_measured_whether_or_not_it_is_unread() -> None:
    row = Row(None, None, {"cosine": 1.0})
    for unread in (False, True, True, False):
        row.unread = unread
        assert (row.measured, row.unread) == ({"cosine": 1.0}, unread)
    row.unread, row.measured = True, None
    assert (row.measured, row.unread) == (None, True)
