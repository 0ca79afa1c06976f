"""Experiments with recorded tensors: each side alone, and the target's call with the golden's values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from proof_calls import floats, layer_norm, made

from msprobe_ms.accuracy.proof.experiments import own_trials, swaps
from msprobe_ms.arrays.typed import TypedArray


def test_a_side_alone_is_held_against_its_own_reference() -> None:
    call = layer_norm()
    assert own_trials(call, "target").recorded.agrees
    assert own_trials(replace(call, outputs=(floats(4, 6, 8, seed=3),)), "target").recorded.agrees is False
    assert own_trials(replace(call, outputs=None), "target").recorded.agrees is None
    assert own_trials(call, "target").here is None, "a module is not run by a framework"


def needed(target: object, golden: object) -> list[str] | None:
    found = swaps(target, golden)  # type: ignore[arg-type]
    return None if found.needed is None else [own.name for own, _ in found.needed]


def test_the_argument_whose_exchange_makes_the_results_agree_is_needed() -> None:
    golden = layer_norm(framework="pytorch")
    assert needed(layer_norm(), golden) == []
    assert needed(layer_norm(1e-2), golden) == ["eps"]
    assert needed(layer_norm(weight=floats(8, seed=4)), golden) == ["weight"]
    assert needed(layer_norm(1e-2, bias=floats(8, seed=4)), golden) == ["bias", "eps"]


def test_inputs_that_differ_by_rounding_alone_are_no_difference() -> None:
    x = floats(4, 6, 8)
    near = TypedArray("float32", x.values * np.float32(1 + 2e-7))
    assert needed(layer_norm(input=near), layer_norm()) == []
    assert needed(layer_norm(1e-2, input=near), layer_norm()) == ["eps"]


def test_another_operation_is_made_right_by_no_exchange() -> None:
    x = floats(4, 8)
    found = swaps(made("silu", input=x), made("gelu", framework="pytorch", input=x))
    assert (found.agrees, found.needed) == (False, None)
