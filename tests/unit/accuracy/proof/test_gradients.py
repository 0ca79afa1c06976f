"""Which gradient of the golden is which of the target's, and what is exchanged of a backward pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from proof_calls import floats, made

from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.experiments import swaps
from msprobe_ms.accuracy.proof.gradients import (
    arriving,
    fed_pairs,
    golden_gradients,
    handed_on,
    without_parameters,
)
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks.api_calls import Arguments

X, W, B = floats(4, 8), floats(3, 8), floats(3)


def linear(order: tuple[str, ...], seed: int = 1) -> Call:
    """A linear layer whose arguments are named in this order, with its gradients in that order."""
    given = {"input": X, "weight": W, "bias": B}
    call = made("linear", "Linear", **{name: given[name] for name in order})
    call = replace(call, output_gradients=(floats(4, 3, seed=seed),))
    right = call.operation.in_double(call.arguments, call.output_gradients).gradients
    return replace(call, input_gradients=[TypedArray("float32", each.values.astype(np.float32)) for each in right])


def test_gradients_are_told_by_the_arguments_that_they_are_of() -> None:
    call = linear(("input", "weight", "bias"))
    assert [slot.name for slot in handed_on(call)] == ["input", "weight", "bias"]
    assert [slot.name for slot in arriving(call)] == ["incoming gradient"]
    index = Call(**{**{f: getattr(call, f) for f in call.__slots__}, "arguments": Arguments((X, 3), {"weight": W})})
    assert [slot.place for slot in handed_on(index)] == [("positional", 0), ("keyword", "weight")]


def test_the_golden_s_stand_in_the_order_of_the_target() -> None:
    target, golden = linear(("input", "weight", "bias")), linear(("bias", "weight", "input"))
    found = golden_gradients(target, golden)
    assert found is not None
    assert [each.values.shape for each in found] == [(4, 8), (3, 8), (3,)]
    assert golden_gradients(replace(target, output_gradients=None), golden) is None
    assert golden_gradients(target, replace(golden, input_gradients=[None, None, None])) is None


def test_one_of_another_shape_is_not_held_against_it() -> None:
    target, golden = linear(("input", "weight", "bias")), linear(("input", "weight", "bias"))
    other = replace(golden, input_gradients=[floats(2, 2), *(golden.input_gradients or ())[1:]])
    found = golden_gradients(target, other)
    assert found is not None and found[0] is None and found[1] is not None
    assert len(fed_pairs(target, golden)) == 1
    assert fed_pairs(target, replace(golden, output_gradients=(floats(5),))) == []


def test_the_gradient_fed_is_exchanged_as_an_argument_is() -> None:
    target, golden = linear(("input", "weight", "bias"), seed=2), linear(("input", "weight", "bias"))
    found = swaps(target, golden, golden_gradients(target, golden))
    assert found.needed is not None and [own.name for own, _ in found.needed] == ["incoming gradient"]
    same = swaps(golden, golden, golden_gradients(golden, golden))
    assert same.agrees


def test_gradients_of_parameters_can_be_left_out() -> None:
    left = without_parameters(linear(("input", "weight", "bias"))).input_gradients
    assert left is not None and [each is None for each in left] == [False, True, True]
