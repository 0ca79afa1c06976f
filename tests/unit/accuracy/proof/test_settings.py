"""What a layer was made with is found from what it gave."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice

import pytest
from proof_calls import SHAPE, floats, layer_norm, made

from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.layers import layer_of
from msprobe_ms.accuracy.proof.settings import error_of, fitted, least, reproduces, rounder, with_settings
from msprobe_ms.frameworks.api_calls import Arguments


def without_settings(call: Call) -> Call:
    tensors = {name: value for name, value in call.arguments.keywords.items() if name in ("input", "weight", "bias")}
    return replace(call, arguments=Arguments((), tensors))


@pytest.mark.parametrize("epsilon", [1e-5, 1e-2, 0.03, 0.0123])
def test_an_epsilon_is_found_to_the_digits_it_was_written_with(epsilon: float) -> None:
    layer = layer_of("LayerNorm")
    assert layer is not None
    found = fitted(without_settings(layer_norm(epsilon)), layer)
    assert found is not None
    assert found.arguments.keywords["eps"] == epsilon


def test_of_many_samples_a_few_tell_the_settings() -> None:
    layer = layer_of("LayerNorm")
    assert layer is not None
    call = made("layer_norm", "LayerNorm", input=floats(300, 1200), normalized_shape=(1200,), eps=3e-3)
    found = fitted(without_settings(call), layer)
    assert found is not None
    assert found.arguments.keywords["eps"] == 3e-3
    assert found.arguments.keywords["input"] is call.arguments.keywords["input"], "all of them are run afterwards"


def test_the_form_of_gelu_is_found() -> None:
    layer = layer_of("GELU")
    assert layer is not None
    call = made("gelu", "GELU", input=floats(*SHAPE), approximate="tanh")
    found = fitted(without_settings(call), layer)
    assert found is not None
    assert found.arguments.keywords["approximate"] == "tanh"


def test_what_no_settings_make_is_found_with_none() -> None:
    layer = layer_of("LayerNorm")
    assert layer is not None
    assert fitted(without_settings(replace(layer_norm(), outputs=(floats(*SHAPE, seed=9),))), layer) is None


def test_a_call_with_other_settings_does_not_reproduce_its_outputs() -> None:
    call = layer_norm(1e-5)
    assert reproduces(call)
    assert not reproduces(with_settings(call, {"eps": 1e-3}))
    assert error_of(with_settings(call, {"normalized_shape": (5,)})) == math.inf


def test_least_finds_the_lowest_point_and_rounder_goes_on_to_all_digits() -> None:
    assert least(lambda x: abs(x - 0.3), -5.0, 5.0) == pytest.approx(0.3, abs=1e-6)
    assert list(islice(rounder(0.012345), 3)) == [0.01, 0.012, 0.0123]
