"""An update lies along what its layer takes in: the wider the layer, the further apart is what it gives out."""

from __future__ import annotations

import numpy as np
import pytest
from compare_parts import dump, tensor

from msprobe_ms.arrays.sketch import encode, sketch
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.origin.earlier_steps import EarlierSteps
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.search import find_origins
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
QUERY, VALUE = "Cell.query.Dense", "Cell.value.Dense"


def side(query: np.ndarray, gradient: np.ndarray, *, value: float = 0.0, wrong: float = 0.0) -> Dump:
    """A step; ``wrong``: the part of its size by which what is taken in is rounded, and the query's result is off."""
    taken, given = X * np.float32(1 + min(wrong, 2e-7)), X @ query.T
    given += np.float32(wrong) * np.linalg.norm(given) / np.linalg.norm(X) * X
    values = [
        (QUERY, "input.0", taken),
        (QUERY, "parameters.weight", query),
        (QUERY, "output.0", given),
        (VALUE, "input.0", X),
        (VALUE, "parameters.weight", OTHER + np.float32(value) * NOISE),
        (VALUE, "output.0", X @ OTHER.T),
        (QUERY, "parameters_grad.weight", gradient),
        (VALUE, "parameters_grad.weight", OTHER),
    ]
    calls = {"parameters_grad.weight": "parameters_grad"}
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


@pytest.mark.parametrize("wrong", [0.3, 1.0])
def test_what_is_further_apart_is_an_origin(wrong: float) -> None:
    assert origins(side(WEIGHT + STEPS, WEIGHT, value=1.00001e-2, wrong=wrong)) == [f"{QUERY}.forward.0.output.0"]


def test_beside_a_weight_that_hardly_differs_nothing_is_let_pass() -> None:
    now = side(WEIGHT + OTHER_STEPS * np.float32(1.01), WEIGHT, value=1.00001e-2, wrong=0.05)
    assert origins(now) == [f"{QUERY}.forward.0.output.0"]
