"""Settings that both sides state differently: what each does, however small beside rounding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from proof_calls import floats, layer_norm, made

from msprobe_ms.accuracy.proof.slots import Slot, paired
from msprobe_ms.accuracy.proof.stated import Effect, computes_otherwise, stated_differently, with_effect
from msprobe_ms.arrays.typed import TypedArray


@pytest.mark.parametrize("epsilons", [(1e-6, 1e-5), (1e-5, 1e-6), (1e-9, 1e-8)])
def test_a_setting_that_moves_results_less_than_rounding_does_is_found(epsilons: tuple[float, float]) -> None:
    target, golden = (layer_norm(epsilon) for epsilon in epsilons)
    (setting,) = stated_differently(target, golden)
    assert (setting.own.name, setting.effect) == ("eps", Effect.MOVES)
    assert 0 < setting.share < 1e-5
    assert with_effect([setting], Effect.MOVES) == [setting]
    drawn = replace(golden, outputs=None)
    assert [each.effect for each in stated_differently(target, drawn)] == [Effect.MOVES]


def test_values_that_mean_the_same_are_told_from_those_that_do_not_show() -> None:
    assert stated_differently(layer_norm(), layer_norm()) == []
    assert stated_differently(layer_norm(1e-5), layer_norm(9.999999747378752e-06)) == [], "kept as float32"
    one, other = (made("layer_norm", input=floats(4, 6, 8), normalized_shape=shape) for shape in ((8,), 8))
    assert {each.effect for each in stated_differently(one, other)} <= {Effect.NONE, Effect.UNKNOWN}
    flat = TypedArray("float32", np.zeros(8, np.float32))
    hidden = (layer_norm(epsilon, weight=flat, bias=flat) for epsilon in (1e-5, 1e-2))
    assert [each.effect for each in stated_differently(*hidden)] == [Effect.HIDDEN]


def test_a_value_that_means_something_else_in_the_other_framework_is_no_difference_of_settings() -> None:
    target, golden = layer_norm(1e-2), replace(layer_norm(1e-5), outputs=layer_norm(1e-2).outputs)
    assert [each.effect for each in stated_differently(target, golden)] == [Effect.OTHERWISE]


def test_dropout_states_what_it_keeps_or_what_it_drops() -> None:
    kept, dropped = Slot("keep_prob", ("attribute", "keep_prob"), 0.9), Slot("p", ("keyword", "p"), 0.1)
    (pair,) = paired([kept], [dropped])
    assert pair[1].value == pytest.approx(0.9)


def test_operations_that_differ_in_float64_compute_otherwise() -> None:
    x = floats(4, 8)
    near = made("gelu", framework="pytorch", input=x, approximate="tanh")
    share = computes_otherwise(made("gelu", input=x), near)
    assert share is not None and 1e-5 < share < 1e-2
    assert computes_otherwise(layer_norm(), layer_norm(framework="pytorch")) is None
