"""Updates of parameters between two steps, from sketches: how large, and how far apart."""

from __future__ import annotations

import numpy as np
import pytest
from compare_parts import dump, tensor
from compare_updates import CALL, GRADIENT, UPDATE, WEIGHT, step, updates


def test_an_update_is_the_difference_of_two_steps() -> None:
    (update,) = updates(np.float32(2e-3) * UPDATE, np.float32(1e-3) * UPDATE)
    assert update.row.target is not None and update.row.target.name == f"{CALL}.parameters.weight"
    assert np.linalg.norm(update.ours) == pytest.approx(np.linalg.norm(2e-3 * UPDATE), rel=0.5)
    assert update.factor == pytest.approx(2, rel=1e-3)
    assert update.apart == pytest.approx(0.5, rel=1e-3)
    assert update.beside_factor < 1e-2
    assert (update.is_known, update.left_alone_by) == (True, "")
    assert update.slope == pytest.approx(np.sqrt((GRADIENT.astype(float) ** 2).mean()), rel=1e-6)


def test_what_one_side_left_alone() -> None:
    (update,) = updates(0 * UPDATE, np.float32(1e-3) * UPDATE)
    assert (update.is_known, update.left_alone_by) == (False, "target")
    (update,) = updates(np.float32(1e-3) * UPDATE, 0 * UPDATE)
    assert update.left_alone_by == "golden"


@pytest.mark.parametrize(("slope", "side"), [(None, "target"), (1e-5, "target"), (1e-10, "")])
def test_a_step_that_the_place_of_epsilon_leaves_nothing_of_is_not_left_alone(slope: float | None, side: str) -> None:
    """Of gradients far below epsilon, as of the bias of keys, one framework makes a thirtieth of the other's update."""
    (update,) = updates(0 * UPDATE, np.float32(5e-5) * UPDATE)
    assert update._replace(slope=slope).left_alone_by == side


def test_rounding_is_no_update() -> None:
    (update,) = updates(np.float32(1e-7) * UPDATE, np.float32(-1e-7) * UPDATE)
    assert (update.is_known, update.left_alone_by) == (False, "")


def test_without_sketches_nothing_is_known() -> None:
    before = step(WEIGHT, GRADIENT, sketches=False), step(WEIGHT, GRADIENT, sketches=False)
    assert updates(UPDATE, -UPDATE, *before) == []


def test_another_layer_in_the_step_before_is_none() -> None:
    other = dump([tensor("parameters.weight", WEIGHT, "Cell.other.Dense.forward.0")])
    assert updates(UPDATE, -UPDATE, other, other) == []
