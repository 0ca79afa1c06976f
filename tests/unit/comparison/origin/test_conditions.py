"""The condition of a call, from its statistics, beside what numpy finds on the same tensors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from compare_parts import dump, tensor
from layer_dumps import Array, normal

from msprobe_ms.comparison.origin.conditions import condition, condition_along, condition_of_shared_error
from msprobe_ms.comparison.origin.connected_nodes import nodes_of
from msprobe_ms.comparison.origin.nodes import Node
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings


def called(name: str, *taken: Array, given: Array, **parameters: Array) -> Node:
    items = [tensor(f"input.{place}", each, name) for place, each in enumerate(taken)]
    items += [tensor(f"parameters.{key}", each, name) for key, each in parameters.items()]
    side = dump([*items, tensor("output.0", given, name)])
    (node,) = nodes_of(pair(side, side, Mappings()))
    return node


def rms(x: Array) -> float:
    return float(np.sqrt(np.mean(np.square(x.astype(np.float64)))))


_RANDOM = np.random.default_rng(20)
X = _RANDOM.standard_normal((64, 32), np.float32) + np.float32(2)
WEIGHT = _RANDOM.standard_normal((16, 32), np.float32)


def test_a_linear_layer_rounds_terms_that_may_cancel() -> None:
    given = X @ WEIGHT.T
    found = condition(called("Cell.fc.Dense.forward.0", X, given=given, weight=WEIGHT))
    assert found == pytest.approx(max(1, math.sqrt(32) * rms(X) * rms(WEIGHT) / rms(given)) * (1 + math.sqrt(32) / 64))


def test_a_normalisation_subtracts_the_mean() -> None:
    found = condition(called("Cell.norm.LayerNorm.forward.0", X, given=normal(64, 32)))
    assert found == pytest.approx(rms(X) / float(X.astype(np.float64).std()), rel=1e-4)


def test_a_sum_has_the_condition_of_its_terms_and_more_of_what_they_share() -> None:
    given = X.sum(1)
    node = called("Tensor.sum.0.forward", X, given=given)
    assert condition(node) == pytest.approx(max(1, math.sqrt(32) * rms(X) / rms(given)))
    assert condition_of_shared_error(node) == pytest.approx(32 * rms(X) / rms(given))


def test_a_part_may_hold_all_of_the_error() -> None:
    found = condition(called("Tensor.__getitem__.0.forward", X, given=X[:1]))
    assert found == pytest.approx(np.linalg.norm(X) / np.linalg.norm(X[:1]), rel=1e-4)


@pytest.mark.parametrize(
    ("name", "expected"), [("sin", float(np.abs(X).max())), ("softmax", rms(X))], ids=["sin", "softmax"]
)
def test_sines_and_softmax_make_relative_error_of_absolute_error(name: str, expected: float) -> None:
    assert condition(called(f"Functional.{name}.0.forward", X, given=normal(64, 32))) == pytest.approx(expected)


def test_a_steep_function_is_asked_for_its_slope() -> None:
    variances = np.array([1e-4, 0.02, 0.03], np.float32)
    found = condition(called("Mint.rsqrt.0.forward", variances, given=1 / np.sqrt(variances)))
    assert found is not None and found > 50


@pytest.mark.parametrize("name", ["Cell.block.Block.forward.0", "Functional.relative_attention.0.forward"])
def test_of_what_computes_anything_it_is_not_known(name: str) -> None:
    assert condition(called(name, X, given=X)) is None


def test_an_update_of_a_weight_along_what_it_takes_in_adds_up() -> None:
    items = [
        tensor(place, each)
        for place, each in (("parameters.weight", WEIGHT), ("input.0", X), ("output.0", X @ WEIGHT.T))
    ]
    found = condition_along(*items)
    assert found is not None
    along = (
        WEIGHT.astype(np.float64)
        + 1e-6 * np.linalg.norm(WEIGHT) * np.outer(np.ones(16), X[0] / np.linalg.norm(X[0])) / 4
    )
    apart = np.linalg.norm(X @ along.T - X @ WEIGHT.T.astype(np.float64)) / np.linalg.norm(X @ WEIGHT.T)
    assert apart <= found * 1e-6


def test_a_gradient_of_which_relu_stops_most_keeps_the_rounding_of_all() -> None:
    arriving = np.where(X > 0, 1e-6, 1.0).astype(np.float32)
    kept = np.where(X > 0, arriving, 0).astype(np.float32)
    found = condition(called("Cell.act.ReLU.backward.0", arriving, given=kept))
    assert found == pytest.approx(rms(arriving) / rms(kept), rel=1e-4)
    assert condition(called("Cell.fc.Dense.backward.0", arriving, given=kept)) is None
