"""Single calls set their results apart by no more than what they take in allows, however far a training has drifted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.origin.earlier_steps import EarlierSteps
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.local_bounds import set_apart_at_most
from msprobe_ms.comparison.origin.search import find_origins
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.dump.model import Dump

RANDOM = np.random.default_rng(29)
SIZE = 48
X, OTHER, WEIGHT, ERROR, SECOND = (RANDOM.standard_normal((SIZE, SIZE)) for _ in range(5))
GAMMA, BETA, VECTOR_ERROR = (RANDOM.standard_normal(SIZE) for _ in range(3))
LAYER = "Cell.net.fc.Dense.forward.0"
Values = Sequence[tuple[str, np.ndarray]]


def step(call: str, drift: float, taken: Values, given: np.ndarray) -> Dump:
    """A layer whose weight has drifted, and a call after it."""
    values = [
        ("input.0", X, LAYER),
        ("parameters.weight", WEIGHT + drift / 10 * SECOND, LAYER),
        ("output.0", OTHER + drift * SECOND, LAYER),
        *((place, each, call) for place, each in taken),
        ("output.0", given, call),
    ]
    items = [(place, each.astype(np.float32), entry) for place, each, entry in values]
    return dump([tensor(place, each, entry, sketch=encode(sketch(each), each.dtype)) for place, each, entry in items])


def found(make: Callable[[float, float], Dump], wrong: float) -> list[str]:
    """The origins of a step that has drifted by 1e-3 since a first one off by rounding, and is ``wrong`` besides."""
    golden, first, now = make(0.0, 0.0), make(1e-7, 0.0), make(1e-3, wrong)
    pairs = pair(now, golden, Mappings())
    measure(pairs, now, golden, "statistics")
    return [each.target for each in find_origins(Evidence(pairs, earlier=EarlierSteps({3: lambda: (first, golden)})))]


def silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


@pytest.mark.parametrize("name", ["Cell.net.act.SiLU.forward.0", "Cell.net.act.SiLUActivation.forward.0"])
def test_an_activation_sets_no_values_further_apart_than_its_slope_does(name: str) -> None:
    def make(drift: float, wrong: float) -> Dump:
        x = X + drift * ERROR
        return step(name, drift, [("input.0", x)], silu(x) + wrong * SECOND)

    assert found(make, 0.0) == []
    golden, now = make(0.0, 0.0), make(1e-3, 6e-3)
    pairs = pair(now, golden, Mappings())
    measure(pairs, now, golden, "statistics")
    (node,) = [each for each in Evidence(pairs).nodes if each.name == name]
    (given,), (taken,) = node.rows("output"), node.rows("input")
    sizes = [float(np.linalg.norm(each)) for each in (X, silu(X))]
    assert taken.deviation is not None
    # Of two estimates, each for itself, one may be four times the other.
    up_to = 4 * 1.13 * taken.deviation * sizes[0] / sizes[1]
    assert set_apart_at_most(given, node) == pytest.approx(up_to, rel=1e-3)


def test_a_sum_is_as_far_apart_as_its_terms_together() -> None:
    name = "Tensor.add.0.forward"

    def make(drift: float, wrong: float) -> Dump:
        terms = X + drift * ERROR, OTHER[0] + drift * VECTOR_ERROR
        return step(name, drift, [("input.0", terms[0]), ("input.1", terms[1])], terms[0] + terms[1] + wrong * SECOND)

    assert found(make, 0.0) == []
    assert found(make, 8e-3) == [f"{name}.output.0"]


def test_a_bias_next_to_zero_may_be_far_apart_and_explains_little_of_a_normalisation() -> None:
    """It is off by a tenth of its own size, by a ten thousandth of the result's; the input by a thousandth."""
    name = "Cell.net.norm.LayerNorm.forward.0"

    def up_to(wrong: float) -> float | None:
        """What the call allows of a result that is wrong by this part besides."""

        def make(drift: float, wrong: float) -> Dump:
            x, bias = X + drift * ERROR, 1e-3 * (BETA + 100 * drift * VECTOR_ERROR)
            normal = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
            taken = [("input.0", x), ("parameters.gamma", 1 + 0.1 * GAMMA), ("parameters.beta", bias)]
            return step(name, drift, taken, normal * (1 + 0.1 * GAMMA) + bias + wrong * SECOND)

        now, golden = make(1e-3, wrong), make(0.0, 0.0)
        pairs = pair(now, golden, Mappings())
        measure(pairs, now, golden, "statistics")
        node = next(each for each in Evidence(pairs).nodes if each.name == name)
        (row,) = node.rows("output")
        return set_apart_at_most(row, node)

    assert up_to(0.0) is None  # the result is within
    assert (allowed := up_to(0.03)) is not None and 2e-3 < allowed < 2e-2


@pytest.mark.parametrize(("backward", "wrong", "told"), [(True, 0.0, False), (True, 1.0, True), (False, 0.0, True)])
def test_small_rows_of_a_normalisation_are_known_by_its_gradient(backward: bool, wrong: float, told: bool) -> None:
    """Eight rows are a fiftieth of the others; updates set them apart, and leave the others alone."""
    name, sizes = "Cell.net.norm.LayerNorm.forward.0", np.where(np.arange(SIZE) < 8, 0.02, 1.0)[:, None]

    def make(drift: float, wrong: float) -> Dump:
        x = sizes * X + drift * 2 * (sizes < 1) * ERROR
        centred = x - x.mean(-1, keepdims=True)
        spread = centred.std(-1, keepdims=True)
        normal = centred / spread
        forward = step(name, drift, [("input.0", x)], normal + wrong * SECOND)
        inner = WEIGHT - WEIGHT.mean(-1, keepdims=True) - normal * (WEIGHT * normal).mean(-1, keepdims=True)
        gradients = [("input.0", WEIGHT), ("output.0", inner / spread)] if backward else []
        entry = name.replace("forward", "backward")
        later = dump([tensor(place, each.astype(np.float32), entry) for place, each in gradients])
        forward.entries.update(later.entries)
        return forward

    assert found(make, wrong) == [f"{name}.output.0"] * told


def test_what_a_mask_has_filled_is_not_held_to_the_norm_of_the_fill() -> None:
    name, mask = "Tensor.add.0.forward", np.where(np.tri(SIZE) > 0, 0.0, -1e9)

    def make(drift: float, wrong: float) -> Dump:
        x = X + drift * ERROR
        return step(name, drift, [("input.0", x), ("input.1", mask)], x + mask)

    assert found(make, 0.0) == []


def test_operands_that_stood_beside_others_in_the_first_step_tell_nothing() -> None:
    name = "Tensor.sub.0.forward"

    def make(drift: float, wrong: float) -> Dump:
        given = OTHER + drift * SECOND
        taken = [("input.0", X), ("input.1", given)] if drift else [("input.0", given), ("input.1", X)]
        return step(name, drift, taken, WEIGHT + drift * ERROR)

    assert found(make, 0.0) == []


@pytest.mark.parametrize("by_indices", [True, False])
def test_indices_may_pick_what_is_further_apart_many_times(*, by_indices: bool) -> None:
    """A table of positions: the row that updates set apart stands at half of the places; a slice has each row once."""
    name, picked = "Tensor.__getitem__.0.forward", np.where(np.arange(SIZE) % 2, 0, np.arange(SIZE))

    def call(drift: float) -> Dump:
        table = X + drift * np.where(np.arange(SIZE) == 0, 1.0, 0.01)[:, None] * ERROR
        given = (table[picked] if by_indices else table[: SIZE // 2]) * (1 + 100 * drift)
        indices = [tensor("input.1", picked.astype(np.int32), name)] if by_indices else []
        arrays = [(place, each.astype(np.float32)) for place, each in (("input.0", table), ("output.0", given))]
        floats = [tensor(place, each, name, sketch=encode(sketch(each), each.dtype)) for place, each in arrays]
        return dump([floats[0], *indices, floats[1]])

    now, golden = call(1e-3), call(0.0)
    pairs = pair(now, golden, Mappings())
    measure(pairs, now, golden, "statistics")
    (node,) = Evidence(pairs).nodes
    (row,) = node.rows("output")
    assert (set_apart_at_most(row, node) is None) == by_indices
