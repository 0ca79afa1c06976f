"""An update lies along what its layer takes in: the wider the layer, the further apart is what it gives out."""

from __future__ import annotations

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.origin.earlier_steps import EarlierSteps
from msprobe_ms.comparison.origin.estimates import ESTIMATE_OF_BOTH
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.explanations.updates.aligned_updates import AlignedUpdates
from msprobe_ms.comparison.origin.search import find_origins
from msprobe_ms.comparison.origin.walk import Walk
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.dump.model import Dump

WIDTH = 512
RANDOM = np.random.default_rng(5)
#: What all tokens share decides on the signs of a gradient.
X = (1 + 0.3 * RANDOM.standard_normal((24, WIDTH))).astype(np.float32)
WEIGHT, OTHER, NOISE = (RANDOM.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 22 for _ in range(3))
#: Full steps of Adam in the direction of a gradient that is rounding, which differs: all of a row have one sign.
STEPS, OTHER_STEPS = (
    np.float32(1e-4) * np.sign(RANDOM.standard_normal((WIDTH, 1))).astype(np.float32) for _ in range(2)
)
#: The same of a bias, beside which the weight is hardly updated.
BIAS, BIAS_STEPS, OTHER_BIAS_STEPS = (
    scale * RANDOM.standard_normal(WIDTH).astype(np.float32) for scale in np.float32([1, 2e-2, 2e-2])
)
QUERY, VALUE = "Cell.query.Dense", "Cell.value.Dense"


def side(
    query: np.ndarray, gradient: np.ndarray, *, value: float = 0.0, wrong: float = 0.0, bias: np.ndarray | None = None
) -> Dump:
    """A step; ``wrong``: the part of its size by which what is taken in is rounded, and the query's result is off."""
    taken, given = X * np.float32(1 + min(wrong, 2e-7)), X @ query.T + (0 if bias is None else bias)
    given += np.float32(wrong) * np.linalg.norm(given) / np.linalg.norm(X) * X
    values = [
        (QUERY, "input.0", taken),
        (QUERY, "parameters.weight", query),
        *([] if bias is None else [(QUERY, "parameters.bias", bias)]),
        (QUERY, "output.0", given),
        (VALUE, "input.0", X),
        (VALUE, "parameters.weight", OTHER + np.float32(value) * NOISE),
        (VALUE, "output.0", X @ OTHER.T),
        (QUERY, "parameters_grad.weight", gradient),
        *([] if bias is None else [(QUERY, "parameters_grad.bias", gradient[0])]),
        (VALUE, "parameters_grad.weight", OTHER),
    ]
    calls = dict.fromkeys(("parameters_grad.weight", "parameters_grad.bias"), "parameters_grad")
    return dump([
        tensor(place, each, f"{name}.{calls.get(place, 'forward.0')}", sketch=encode(sketch(each), each.dtype))
        for name, place, each in values
    ])  # fmt: skip


def origins(now: Dump) -> list[str]:
    golden = side(WEIGHT + OTHER_STEPS, NOISE, value=1e-2)
    pairs = pair(now, golden, Mappings())
    measure(pairs, now, golden, "statistics")
    first = side(WEIGHT, WEIGHT, wrong=2e-7), side(WEIGHT, NOISE)
    return [each.target for each in find_origins(Evidence(pairs, earlier=EarlierSteps({1: lambda: first})))]


def test_a_wide_layer_makes_much_of_updates_that_are_noise() -> None:
    """Weights 3e-3 apart make what comes out 6e-2 apart, of a condition of 1: twenty times as much."""
    assert origins(side(WEIGHT + STEPS, WEIGHT, value=1.00001e-2)) == []


def test_two_sketches_may_estimate_what_is_in_proportion_twice_apart() -> None:
    """Of a hundred updates, one: what comes out is 6e-2 apart, by sketches twice as much of the weight as it may be."""
    # The first such seed is 749; those before it take seconds.
    steps = next(each for each in map(steps_of_seed, range(740, 2_000)) if times_estimated(each - OTHER_STEPS) > 2.3)
    assert origins(side(WEIGHT + steps, WEIGHT, value=1.00001e-2)) == []


def steps_of_seed(seed: int) -> np.ndarray:
    signs = np.sign(np.random.default_rng(seed).standard_normal((WIDTH, 1)))
    return np.float32(1e-4) * signs.astype(np.float32)


def times_estimated(apart: np.ndarray) -> float:
    """How many times larger a sketch estimates what comes out apart than that of the weight says it is."""
    apart = np.broadcast_to(apart, WEIGHT.shape)
    given, added = (np.linalg.norm(sketch(each)) / np.linalg.norm(each) for each in (X @ apart.T, apart))
    return float(given / added)


@pytest.mark.parametrize("wrong", [0.5, 1.0])
def test_what_is_further_apart_is_an_origin(wrong: float) -> None:
    assert origins(side(WEIGHT + STEPS, WEIGHT, value=1.00001e-2, wrong=wrong)) == [f"{QUERY}.forward.0.output.0"]


def test_beside_a_weight_that_hardly_differs_nothing_is_let_pass() -> None:
    now = side(WEIGHT + OTHER_STEPS * np.float32(1.01), WEIGHT, value=1.00001e-2, wrong=0.05)
    assert origins(now) == [f"{QUERY}.forward.0.output.0"]


def test_updates_of_a_bias_add_to_all_that_comes_out() -> None:
    little, shift = np.float32(1e-2), BIAS + BIAS_STEPS
    golden = side(WEIGHT + little * OTHER_STEPS, NOISE, value=1e-2, bias=BIAS + OTHER_BIAS_STEPS)
    allowed = []
    for bias in (shift, BIAS + OTHER_BIAS_STEPS):
        now = side(WEIGHT + little * STEPS, WEIGHT, value=1.00001e-2, bias=bias)
        pairs = pair(now, golden, Mappings())
        measure(pairs, now, golden, "statistics")
        first = side(WEIGHT, WEIGHT, wrong=2e-7, bias=BIAS), side(WEIGHT, NOISE, bias=BIAS)
        evidence = Evidence(pairs, earlier=EarlierSteps({1: lambda first=first: first}))
        node = next(each for each in evidence.nodes if each.name == f"{QUERY}.forward.0")
        (row,) = node.rows("output")
        allowance = AlignedUpdates(evidence).allows(row, node, Walk(evidence))
        assert allowance is not None
        allowed.append(allowance.up_to)
    given = X @ (WEIGHT + little * OTHER_STEPS).T + BIAS + OTHER_BIAS_STEPS
    added = np.linalg.norm(shift - BIAS - OTHER_BIAS_STEPS) * np.sqrt(len(X)) / np.linalg.norm(given)
    assert allowed[0] - allowed[1] == pytest.approx(ESTIMATE_OF_BOTH * added, rel=0.5)  # the sketch estimates it
    assert added > 1e-2
