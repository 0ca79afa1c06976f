"""Updates of parameters between two steps, from sketches: how large, how far apart, and which of them say something."""

from __future__ import annotations

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.updates import Update, apart_by_updates, place_of, updates_since
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.dump.model import Dump

_RANDOM = np.random.default_rng(3)
WEIGHT, UPDATE, GRADIENT = (_RANDOM.standard_normal((40, 30)).astype(np.float32) for _ in range(3))
CALL = "Cell.fc.Dense.forward.0"


def step(weight: np.ndarray, gradient: np.ndarray | None = None, *, sketches: bool = True) -> Dump:
    places = [("input.0", WEIGHT, CALL), ("parameters.weight", weight, CALL), ("output.0", weight, CALL)]
    if gradient is not None:
        places.append(("parameters_grad.weight", gradient, "Cell.fc.Dense.parameters_grad"))
    items = [
        tensor(place, values, entry, sketch=encode(sketch(values), values.dtype) if sketches else None)
        for place, values, entry in places
    ]
    return dump(items)


def updates(ours: np.ndarray, theirs: np.ndarray, *before: Dump) -> list[Update]:
    target, golden = step(WEIGHT + ours), step(WEIGHT + theirs)
    pairs = pair(target, golden, Mappings())
    measure(pairs, target, golden, "statistics")
    both = before or (step(WEIGHT, GRADIENT), step(WEIGHT, GRADIENT))
    return list(updates_since(Evidence(pairs).nodes, *both))


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


def test_rounding_is_no_update() -> None:
    (update,) = updates(np.float32(1e-7) * UPDATE, np.float32(-1e-7) * UPDATE)
    assert (update.is_known, update.left_alone_by) == (False, "")


def test_gradients_that_differ_say_nothing_of_the_optimizer() -> None:
    (other,) = updates(UPDATE, -UPDATE, step(WEIGHT, GRADIENT), step(WEIGHT, 1.1 * GRADIENT))
    assert not other.same_gradient and apart_by_updates([other]) == {}
    (unknown,) = updates(UPDATE, UPDATE, step(WEIGHT), step(WEIGHT))  # not recorded: taken to agree
    assert unknown.same_gradient
    # Optimizers that do the same are known by others; then the gradients explain what this one was set apart by.
    assert apart_by_updates([unknown, other])[place_of(other.row)] > 1e-3


def adam(gradient: np.ndarray, epsilon: float) -> np.ndarray:
    """Its first step."""
    return np.float32(-1e-3) * gradient / (np.abs(gradient) + np.float32(epsilon))


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


def test_without_sketches_nothing_is_known() -> None:
    before = step(WEIGHT, GRADIENT, sketches=False), step(WEIGHT, GRADIENT, sketches=False)
    assert updates(UPDATE, -UPDATE, *before) == []


def test_another_layer_in_the_step_before_is_none() -> None:
    other = dump([tensor("parameters.weight", WEIGHT, "Cell.other.Dense.forward.0")])
    assert updates(UPDATE, -UPDATE, other, other) == []
