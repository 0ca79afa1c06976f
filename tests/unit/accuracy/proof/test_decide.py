"""From experiments to which side is wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from proof_calls import floats, layer_norm, made

from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.decide import decide
from msprobe_ms.accuracy.proof.verdict import Finding, Proof
from msprobe_ms.arrays.typed import TypedArray


def of(target: Call, golden: Call | None, made_by: str = "") -> Proof:
    return decide(target, golden, lambda slot: made_by)


def test_each_finding() -> None:
    golden = layer_norm(framework="pytorch")
    broken = (floats(4, 6, 8, seed=3),)
    assert of(layer_norm(), golden).finding is Finding.RIGHT
    assert of(layer_norm(), None).finding is Finding.RIGHT
    assert of(layer_norm(1e-2), golden).finding is Finding.SETTING
    assert of(layer_norm(weight=floats(8, seed=4)), golden).finding is Finding.PARAMETER
    assert of(replace(layer_norm(), outputs=broken), golden).finding is Finding.OPERATOR
    assert of(replace(layer_norm(), outputs=broken), None).finding is Finding.OPERATOR
    assert of(layer_norm(), replace(golden, outputs=broken)).finding is Finding.GOLDEN
    assert of(replace(layer_norm(), outputs=None), golden).finding is Finding.UNDECIDED
    x = floats(4, 8)
    assert of(made("silu", input=x), made("gelu", framework="pytorch", input=x)).finding is Finding.OPERATION


def test_the_sentence_on_a_setting_has_both_values() -> None:
    said = of(layer_norm(1e-2), layer_norm(framework="pytorch")).sentence
    assert (
        said == "fed the golden inputs, MindSpore's LayerNorm is right with epsilon 1e-05; the dump was made with 0.01"
    )


def test_a_call_that_is_fed_something_else_is_right_and_names_what_made_it() -> None:
    proof = of(layer_norm(input=floats(4, 6, 8, seed=2)), layer_norm(), "Cell.fc.Dense.forward.0")
    assert proof.finding is Finding.INPUT
    assert proof.finding.is_right
    assert "look at Cell.fc.Dense.forward.0" in proof.sentence


def test_exchanged_parameters_are_called_so() -> None:
    one, other = floats(8), floats(8, seed=1)
    proof = of(layer_norm(weight=other, bias=one), layer_norm(weight=one, bias=other))
    assert proof.finding is Finding.EXCHANGED
    assert "`weight` and `bias` are exchanged" in proof.sentence


def test_a_gradient_that_arrives_otherwise_is_of_the_calls_after() -> None:
    target, golden = (
        replace(layer_norm(), output_gradients=(floats(4, 6, 8, seed=seed),)) for seed in (7, 8)
    )  # fmt: skip
    assert "the gradient that arrives at MindSpore's LayerNorm differs already" in of(target, golden).sentence


def with_gradients(call: Call, seed: int = 7, times: float = 1.0) -> Call:
    """The call with a gradient that arrives, and those that float32 would hand on, ``times`` as large."""
    fed = replace(call, output_gradients=(floats(4, 6, 8, seed=seed),))
    right = fed.operation.in_double(fed.arguments, fed.output_gradients).gradients
    handed = [TypedArray("float32", (each.values * times).astype(np.float32)) for each in right]
    return replace(fed, input_gradients=handed)


def test_backward_is_proved_where_the_results_agree() -> None:
    golden = with_gradients(layer_norm(framework="pytorch"))
    right = decide(with_gradients(layer_norm()), golden, lambda slot: "", backward=True)
    assert right.finding is Finding.RIGHT and "golden's gradients" in right.trials[-1].what
    fed = decide(with_gradients(layer_norm(), 8), golden, lambda slot: f"{slot.place}", backward=True)
    assert fed.finding is Finding.INPUT and "look at ('gradient', 0), which made it" in fed.sentence
    setting = decide(with_gradients(layer_norm(1e-2)), golden, lambda slot: "", backward=True)
    assert setting.finding is Finding.SETTING


def test_a_gradient_that_is_wrong_is_named_and_by_how_much() -> None:
    golden = with_gradients(layer_norm(framework="pytorch"))
    twice = decide(with_gradients(layer_norm(), times=2.0), golden, lambda slot: "", backward=True)
    assert twice.finding is Finding.OPERATOR
    assert "make (it is 2 times the right one)" in twice.sentence
    cut = with_gradients(layer_norm(), times=0.0)
    assert "(it is zero throughout)" in decide(cut, golden, lambda slot: "").sentence
