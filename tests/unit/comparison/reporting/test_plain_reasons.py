"""Tests that reasons made of many rows at once are those that each row gives."""

from __future__ import annotations

import numpy as np
from compare_parts import side_by_side, tensor

from msprobe_ms.comparison.model import Comparison, Row, Said
from msprobe_ms.comparison.reporting.plain_reasons import PlainReason, reasons_of
from msprobe_ms.comparison.reporting.profiles import own

EVERYWHERE = np.arange(6)


def compared() -> Comparison:
    """Rows of each plain reason, one with a text, one with none."""
    rows = []
    for number, reason in enumerate([*own._PLAINLY.values(), "a text", ""]):
        row = Row(tensor("output.0", [1.0]), tensor("output.0", [2.0]), None, 0.123456 + number, 1e-6)
        row.inherited_from = f"Tensor.{{add}}.{number}.forward"
        row.said = Said("differs", reason)
        rows.append(row)
    pair = side_by_side((tensor("output.0", [1.0]), tensor("output.0", [2.0])))
    pair.rows = rows
    return Comparison("statistics", [pair])


def test_reasons_of_many_are_those_of_each() -> None:
    comparison = compared()
    assert reasons_of(comparison, EVERYWHERE) == [row.reason for row in comparison.rows]
    assert reasons_of(comparison, EVERYWHERE[4:]) == ["a text", ""]
    assert [type(row.said.reason) for row in comparison.rows[:4]] == [PlainReason] * 4


def test_a_reason_names_what_it_tells_of() -> None:
    texts = reasons_of(compared(), EVERYWHERE)
    assert all(text.startswith("It deviates by ") for text in texts[:4])
    assert any("inherited from Tensor.{add}." in text for text in texts)
