"""Tests that the deviations of rows in arrays say what each of the rows says."""

from __future__ import annotations

import math

import pytest

from msprobe_ms.comparison.model import Allowance, Effect, Row
from msprobe_ms.comparison.origin.nodes import error_ratio
from msprobe_ms.comparison.row_deviations import deviations_of


def _row(deviation: float | None, tolerance: float | None, explained: Allowance | None = None) -> Row:
    row = Row(None, None, None, deviation, tolerance)
    row.explained = explained
    return row


def _rows() -> list[Row]:
    """Nothing to compare, equal, near, far apart, without bounds, and far apart for each effect of what explains it."""
    plain = [(None, None), (0.0, 1e-6), (0.0, 0.0), (1e-7, 1e-6), (0.5, 1e-6), (0.5, 0.0), (math.inf, 1e-6)]
    explained = [Allowance("reason", 1e-7, effect=effect) for effect in Effect]
    return [*(_row(*each) for each in plain), *(_row(5e-7, 1e-6, each) for each in explained)]


def test_rows_differ_in_arrays_where_they_differ_alone() -> None:
    rows = _rows()
    deviations = deviations_of(rows)
    assert deviations.known.tolist() == [row.deviation is not None for row in rows]
    assert deviations.differs.tolist() == [row.differs for row in rows]
    assert deviations.misrecorded.tolist() == [row.misrecorded for row in rows]
    assert deviations.held_to.tolist()[1:] == [row.held_to for row in rows[1:]]
    assert math.isnan(deviations.values[0]) and math.isnan(deviations.held_to[0])


def test_error_ratios_are_those_of_the_rows() -> None:
    rows = _rows()
    assert deviations_of(rows).ratios.tolist() == pytest.approx([error_ratio(row) for row in rows])


def test_there_may_be_no_rows() -> None:
    assert not len(deviations_of([]).ratios)
