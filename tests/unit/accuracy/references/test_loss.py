"""Cross entropy."""

from __future__ import annotations

import numpy as np
import pytest
from reference_calls import assert_gradients, normal, outputs, reference

from msprobe_ms.accuracy.references import NotReproducible

LOSS = reference("cross_entropy", "Functional")
SHAPES = [((5,), ()), ((4, 5), (4,)), ((2, 5, 3), (2, 3)), ((2, 5, 3, 2), (2, 3, 2))]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("shape", "of_target"), SHAPES)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_gradients(reduction: str, shape: tuple[int, ...], of_target: tuple[int, ...], smoothing: float) -> None:
    x = normal(*shape)
    target = np.random.default_rng(1).integers(0, 5, of_target)
    if of_target:
        target.reshape(-1)[0] = -100
    weight = np.linspace(0.5, 2, 5)
    given = {"reduction": reduction, "label_smoothing": smoothing}
    assert_gradients(LOSS, x, np.asarray(target), weight, **given)
    shares = np.exp(normal(*shape, seed=2))
    assert_gradients(LOSS, x, shares, weight, **given)


def test_the_average_is_weighted_and_ignores_what_it_should() -> None:
    x, target, weight = normal(3, 4), np.array([1, 7, 2]), np.array([1.0, 2.0, 3.0, 4.0])
    log_p = x - np.log(np.exp(x).sum(-1, keepdims=True))
    (loss,) = outputs(LOSS, x, target, weight, ignore_index=7)
    assert loss.shape == ()
    np.testing.assert_allclose(loss, -(2 * log_p[0, 1] + 3 * log_p[2, 2]) / 5, rtol=1e-13)
    (each,) = outputs(LOSS, x, target, weight, ignore_index=7, reduction="none")
    np.testing.assert_allclose(each, [-2 * log_p[0, 1], 0, -3 * log_p[2, 2]], rtol=1e-13)


def test_smoothing_leaves_ignored_elements_at_nothing() -> None:
    (each,) = outputs(LOSS, normal(2, 4), np.array([1, -100]), reduction="none", label_smoothing=0.5)
    assert each[0] > 0 and each[1] == 0


def test_large_scores_do_not_overflow() -> None:
    (loss,) = outputs(LOSS, np.array([[1e4, 0.0]]), np.array([1]))
    assert loss == 1e4


def test_targets_beyond_the_classes_and_unknown_reductions_are_refused() -> None:
    with pytest.raises(NotReproducible, match="beyond the 4 classes"):
        outputs(LOSS, normal(2, 4), np.array([0, 4]))
    with pytest.raises(NotReproducible, match="'max'"):
        outputs(LOSS, normal(2, 4), np.array([0, 1]), reduction="max")
    with pytest.raises(NotReproducible, match="no size_average"):
        outputs(LOSS, normal(2, 4), np.array([0, 1]), size_average=False)
