"""Settings from how far norms are apart."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from proof_calls import floats, layer_norm, made

from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.drawn_settings import explained, log_ratio, norm_change, percent
from msprobe_ms.accuracy.proof.layers import layer_of
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks.api_calls import Arguments


def of_ones(epsilon: float, seed: int = 0) -> Call:
    ones, zeros = (TypedArray("float32", np.full(64, value, np.float32)) for value in (1, 0))
    tensors = {"input": floats(40, 64, seed=seed), "weight": ones, "bias": zeros}
    call = layer_norm()
    return replace(call, arguments=Arguments((), {**tensors, "normalized_shape": (64,), "eps": epsilon}))


def without_settings(call: Call) -> Call:
    tensors = {name: call.arguments.keywords[name] for name in ("input", "weight", "bias")}
    return replace(call, arguments=Arguments((), tensors))


def test_an_epsilon_is_told_from_the_norm_on_other_data() -> None:
    layer = layer_of("LayerNorm")
    recorded = norm_change(of_ones(1e-2, seed=99), of_ones(1e-5, seed=99))
    assert layer is not None
    assert recorded is not None
    drawn = [without_settings(of_ones(1e-5, seed)) for seed in range(3)]
    found = explained(drawn, layer, recorded)
    assert found is not None
    assert found.told.startswith("epsilon 0.01 (about")
    assert found.usual == "1e-05"
    assert explained(drawn, layer, 5.0) is None, "no epsilon makes results larger"


def test_a_form_is_told_only_where_it_changes_as_much() -> None:
    layer = layer_of("GELU")
    call = made("gelu", "GELU", input=floats(40, 64))
    other = made("gelu", "GELU", input=floats(40, 64, seed=5), approximate="tanh")
    recorded = norm_change(other, made("gelu", input=floats(40, 64, seed=5)))
    assert layer is not None
    assert recorded is not None
    found = explained([call], layer, recorded)
    assert found is not None
    assert (found.told, found.usual) == ("approximate 'tanh'", "'none'")
    assert explained([call], layer, 100 * recorded) is None


def test_ratios() -> None:
    assert log_ratio(math.e, 1.0) == pytest.approx(1)
    assert log_ratio(0.0, 1.0) is log_ratio(None, 1.0) is log_ratio(math.inf, 1.0) is None
    assert percent(math.log(1.05)) == "+5 %"
