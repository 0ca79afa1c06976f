"""Optimizers that do the same explain how far apart their updates set parameters; others do not."""

from __future__ import annotations

import numpy as np
import pytest
from compare_updates import GRADIENT, UPDATE, WEIGHT, step, updates

from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.same_optimizer import apart_by_updates
from msprobe_ms.comparison.origin.updates import place_of, updates_since
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings


def test_gradients_that_differ_say_nothing_of_the_optimizer() -> None:
    (other,) = updates(UPDATE, -UPDATE, step(WEIGHT, GRADIENT), step(WEIGHT, 1.1 * GRADIENT))
    assert not other.same_gradient and apart_by_updates([other]) == {}
    (unknown,) = updates(UPDATE, UPDATE, step(WEIGHT), step(WEIGHT))  # not recorded: taken to agree
    assert unknown.same_gradient
    # Optimizers that do the same are known by others; then the gradients explain what this one was set apart by.
    assert apart_by_updates([unknown, other])[place_of(other.row)] > 1e-3


@pytest.mark.parametrize(
    ("ours", "follows"),
    [(1.1, True), (1.0, True), (2.2, False), (-1.1, False), (0.0, False)],
    ids=["in proportion", "of one size", "another rate", "another direction", "left alone"],
)
def test_where_no_other_is_known_an_update_differs_by_no_more_than_its_gradients(ours: float, *, follows: bool) -> None:
    """As in narrow floats, which hide the updates of all that is no bias beginning at zero."""
    rate = np.float32(-1e-3)
    before = step(WEIGHT, np.float32(1.1) * GRADIENT), step(WEIGHT, GRADIENT)
    (update,) = updates(rate * np.float32(ours) * GRADIENT, rate * GRADIENT, *before)
    assert not update.same_gradient
    assert (place_of(update.row) in apart_by_updates([update])) == follows


def adam(gradient: np.ndarray, epsilon: float) -> np.ndarray:
    """Its first step."""
    return np.float32(-1e-3) * gradient / (np.abs(gradient) + np.float32(epsilon))


def test_beside_zeros_that_no_update_moved_any_rounding_is_far() -> None:
    """A bias before a norm: its gradient is rounding on one side, and exactly zero on the other."""
    (unknown,) = updates(UPDATE, UPDATE, step(WEIGHT), step(WEIGHT))
    zeros, noise = 0 * WEIGHT, np.float32(1e-9) * UPDATE
    target, golden = step(noise), step(zeros)
    pairs = pair(target, golden, Mappings())
    measure(pairs, target, golden, "statistics")
    (other,) = updates_since(Evidence(pairs).nodes, step(zeros, noise), step(zeros, zeros))
    assert apart_by_updates([unknown, other])[place_of(other.row)] == np.inf


def test_epsilon_makes_steps_of_small_elements_fade_though_others_are_large() -> None:
    """Of queries, keys and values in one weight, the values' gradients are large."""
    fused = np.where(np.arange(40)[:, None] < 4, np.float32(1e-3), np.float32(5e-8)) * GRADIENT
    ours, theirs = adam(fused, 3.2e-7), adam(fused, 1e-8)
    (update,) = updates(ours, theirs, step(WEIGHT, fused), step(WEIGHT, fused))
    assert update.by_epsilon < 0.1 and update.sizes[1] > 2 * update.sizes[0] and not update.is_steady
    assert update.fades(full=1e-3)
    assert not update.fades(full=1e-4), "no step is larger than a full one"
    steady = [updates(adam(size * GRADIENT, 1e-8), adam(size * GRADIENT, 1.1e-8))[0] for size in (1e-2, 1e-4, 1e-6)]
    known = [each._replace(slope=size) for each, size in zip(steady, (1e-2, 1e-4, 1e-6), strict=True)]
    assert apart_by_updates([*known, *known, update])[place_of(update.row)] > 1e-4
    for other in (np.float32(0.3) * theirs, np.float32(-0.3) * theirs, np.float32(3e-4) * UPDATE):
        (update,) = updates(other, theirs, step(WEIGHT, fused), step(WEIGHT, fused))
        assert not update.fades(full=1e-3), "another learning rate, direction or rule"


def test_rounding_makes_steps_in_any_direction_where_a_gradient_has_room_for_it() -> None:
    """Both sides hold the same gradient; one makes of all its elements a step as large as the other's, elsewhere."""
    steady = [updates(adam(size * GRADIENT, 1e-8), adam(size * GRADIENT, 1.1e-8))[0] for size in (1e-2, 1e-4)]
    known = [each._replace(slope=size) for each, size in zip(steady, (1e-2, 1e-4), strict=True)]

    def is_explained(gradient: np.ndarray) -> bool:
        before = step(WEIGHT, gradient), step(WEIGHT, gradient)
        (update,) = updates(np.float32(1e-3) * np.sign(UPDATE), np.float32(-1e-3) * np.sign(GRADIENT), *before)
        assert not update.is_steady and update.slope is not None and update.slope > 1e-5
        return apart_by_updates([*known, *known, *known, *known, update])[place_of(update.row)] > 1e-4

    assert is_explained(np.where(np.arange(1200).reshape(40, 30) < 60, np.float32(1e-3), np.float32(1e-10)) * GRADIENT)
    assert not is_explained(np.float32(1e-3) * GRADIENT), "none of normal numbers is rounding beside the others"
