"""What a layer was made with is found from what it gave."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice

import pytest
from proof_calls import SHAPE, floats, layer_norm, made

from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.layers import layer_of
from msprobe_ms.accuracy.proof.settings import error_of, fits, fitted, least, reproduces, rounder, with_settings
from msprobe_ms.frameworks.api_calls import Arguments


def without_settings(call: Call) -> Call:
    tensors = {name: value for name, value in call.arguments.keywords.items() if name in ("input", "weight", "bias")}
    return replace(call, arguments=Arguments((), tensors))


@pytest.mark.parametrize("epsilon", [1e-5, 1e-2, 0.03, 0.0123])
def test_an_epsilon_is_found_to_the_digits_it_was_written_with(epsilon: float) -> None:
    layer = layer_of("LayerNorm")
    assert layer is not None
    found = fits(without_settings(layer_norm(epsilon)), layer)
    assert found
    assert found[0].settings["eps"] == epsilon


def test_of_many_samples_a_few_tell_the_settings() -> None:
    layer = layer_of("LayerNorm")
    assert layer is not None
    call = made("layer_norm", "LayerNorm", input=floats(300, 1200), normalized_shape=(1200,), eps=3e-3)
    found = fits(without_settings(call), layer)
    assert found
    assert found[0].settings["eps"] == 3e-3


def test_the_form_of_gelu_is_found() -> None:
    layer = layer_of("GELU")
    assert layer is not None
    call = made("gelu", "GELU", input=floats(*SHAPE), approximate="tanh")
    found = fits(without_settings(call), layer)
    assert found
    assert found[0].settings["approximate"] == "tanh"


def test_settings_that_rounding_hides_are_told_apart_where_one_reproduces_far_more() -> None:
    layer = layer_of("LayerNorm")
    assert layer is not None
    near, usual = (without_settings(layer_norm(epsilon)) for epsilon in (1e-6, 1e-5))
    found = fitted(near, usual, (layer, layer))
    assert [call.arguments.keywords["eps"] for call in found[:2] if call is not None] == [1e-6, 1e-5]
    alike = fitted(without_settings(layer_norm(1e-12)), without_settings(layer_norm(1e-8)), (layer, layer))
    assert alike.target is not None and alike.golden is not None
    assert alike.target.arguments.keywords["eps"] == alike.golden.arguments.keywords["eps"]
    assert {settings["eps"] for settings in alike.like} >= {1e-12}
    assert fitted(usual, None, (layer, layer)).golden is None


def test_what_no_settings_make_is_found_with_none() -> None:
    layer = layer_of("LayerNorm")
    assert layer is not None
    assert fits(without_settings(replace(layer_norm(), outputs=(floats(*SHAPE, seed=9),))), layer) == []


def test_a_call_with_other_settings_does_not_reproduce_its_outputs() -> None:
    call = layer_norm(1e-5)
    assert reproduces(call)
    assert not reproduces(with_settings(call, {"eps": 1e-3}))
    assert error_of(with_settings(call, {"normalized_shape": (5,)})) == math.inf


def test_least_finds_the_lowest_point_and_rounder_goes_on_to_all_digits() -> None:
    assert least(lambda x: abs(x - 0.3), -5.0, 5.0) == pytest.approx(0.3, abs=1e-6)
    assert list(islice(rounder(0.012345), 3)) == [0.01, 0.012, 0.0123]
