"""Tests that a column of sketches gives back what was put into it, and passes over what is no sketch."""

from __future__ import annotations

from base64 import b64encode

import numpy as np
import pytest

from msprobe_ms.dump.sketch_column import SketchColumn


def text(numbers: np.ndarray) -> str:
    return b64encode(numbers.tobytes()).decode()


@pytest.fixture
def column() -> SketchColumn:
    """Sketches of items 1, of float32, and 3, of float64; what items 4 and 5 have is none."""
    made = SketchColumn()
    assert not made
    made.add(1, text(np.arange(16, dtype="<f4")))
    made.add(3, text(np.arange(16, dtype="<f8") / 7))
    made.add(4, text(np.arange(15, dtype="<f4")))
    made.add(5, 5)
    return made


def test_texts_are_those_that_were_added(column: SketchColumn) -> None:
    assert column
    known = {1: text(np.arange(16, dtype="<f4")), 3: text(np.arange(16, dtype="<f8") / 7)}
    assert {number: column.text(number) for number in range(7) if column.text(number)} == known


def test_numbers_of_many_are_nan_where_there_is_no_sketch(column: SketchColumn) -> None:
    found = column.numbers([3, 0, 1, 6])
    assert found.shape == (4, 16) and np.isnan(found[[1, 3]]).all()
    assert np.array_equal(found[0], np.arange(16) / 7) and np.array_equal(found[2], np.arange(16.0))
