"""Softmax with a mask."""

from __future__ import annotations

import numpy as np
import pytest
from reference_calls import assert_gradients, gradients, normal, outputs, reference

from msprobe_ms.accuracy.references import NotReproducible

MASKED, BACKWARD = reference("npu_scaled_masked_softmax"), reference("npu_scaled_masked_softmax_backward")
X = normal(2, 3, 4, 4)
MASK = normal(2, 1, 4, 4, seed=1) > 0.5


def test_dropped_elements_get_nothing() -> None:
    (y,) = outputs(MASKED, X, MASK, 0.5)
    exponentials = np.exp(0.5 * X) * ~MASK
    np.testing.assert_allclose(y, exponentials / exponentials.sum(-1, keepdims=True), rtol=1e-13)
    assert_gradients(MASKED, X, MASK, 0.5)


def test_a_row_of_dropped_elements_has_equal_shares() -> None:
    (y,) = outputs(MASKED, X, np.ones_like(MASK))
    np.testing.assert_array_equal(y, np.full_like(X, 0.25))


@pytest.mark.parametrize("given", [MASK, None, np.zeros((1, 1, 4, 4), np.uint8)])
def test_the_fixed_mask_is_the_upper_triangle_whatever_is_given(given: np.ndarray | None) -> None:
    upper = np.triu(np.ones((4, 4), bool), 1)
    np.testing.assert_array_equal(
        outputs(MASKED, X, given, 2.0, fixed_triu_mask=True)[0], outputs(MASKED, X, upper, 2.0)[0]
    )


def test_large_scores_do_not_overflow() -> None:
    assert np.isfinite(outputs(MASKED, 1e3 * X, MASK)[0]).all()


def test_the_backward_is_an_operator_of_its_own() -> None:
    g = normal(*X.shape, seed=2)
    (y,) = outputs(MASKED, X, MASK, 0.5)
    np.testing.assert_array_equal(outputs(BACKWARD, g, y, MASK, 0.5)[0], gradients(MASKED, [g], X, MASK, 0.5)[0])


def test_without_a_mask_it_is_refused() -> None:
    with pytest.raises(NotReproducible, match="no mask"):
        outputs(MASKED, X, None)
