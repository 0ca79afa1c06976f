"""Position codes, by rows."""

from __future__ import annotations

import numpy as np
from reference_calls import normal

from msprobe_ms.accuracy.references import NotJudged
from msprobe_ms.accuracy.references.attention.bias import AlibiBias, GivenBias, LastRowsBias


def test_gradients_are_summed_where_codes_were_shared() -> None:
    bias = GivenBias(normal(1, 2, 1, 4))
    for batch in (0, 1):
        for rows in (slice(0, 2), slice(2, 3)):
            bias.add_gradient(batch, 1, rows, np.ones((rows.stop - rows.start, 4)))
    np.testing.assert_array_equal(bias.gradient[0, :, 0], [[0] * 4, [6] * 4])


def test_rows_are_those_of_the_head() -> None:
    codes = normal(2, 3, 5, 4)
    np.testing.assert_array_equal(GivenBias(codes).rows(1, 2, slice(1, 3), (5, 4)), codes[1, 2, 1:3])
    np.testing.assert_array_equal(GivenBias(codes[0, 0]).rows(1, 2, slice(1, 3), (5, 4)), codes[0, 0, 1:3])


def test_codes_that_follow_a_pattern_have_no_gradient() -> None:
    slopes = AlibiBias(np.array([1.0, 0.5]), False, 0, 0)
    np.testing.assert_array_equal(slopes.rows(0, 1, slice(0, 2), (2, 3)), [[0, -0.5, -1], [-0.5, 0, -0.5]])
    distances = np.arange(6.0) - np.arange(6.0)[:, None]
    last = LastRowsBias(distances[None, None, -2:])
    found = last.rows(0, 0, slice(0, 6), (6, 6))
    np.testing.assert_array_equal(np.tril(found), np.tril(distances))
    assert isinstance(slopes.gradient, NotJudged) and isinstance(last.gradient, NotJudged)
