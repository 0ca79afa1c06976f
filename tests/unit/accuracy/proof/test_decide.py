"""From experiments to which side is wrong."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
from proof_calls import floats, layer_norm, made

from msprobe_ms.accuracy.proof.call import Call
from msprobe_ms.accuracy.proof.decide import decide
from msprobe_ms.accuracy.proof.verdict import Finding, Proof
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.support.translation import speaking, translated


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


def test_gradients_that_cannot_be_compared_are_not_called_right() -> None:
    x = floats(4, 8)
    call = replace(made("gelu", input=x), output_gradients=(floats(3, 3),), input_gradients=(x,))
    for golden in (None, made("gelu", framework="pytorch", input=x)):
        assert of(call, golden).finding is Finding.RIGHT, "its results were asked about"
        proof = decide(call, golden, lambda slot: "", backward=True)
        assert proof.finding is Finding.UNDECIDED
        assert "; its gradients cannot be compared: " in proof.sentence


def test_the_sentence_on_a_setting_has_both_values() -> None:
    said = of(layer_norm(1e-2), layer_norm(framework="pytorch")).sentence
    assert said.startswith(
        "the setting `epsilon` differs: 0.01 in MindSpore's LayerNorm, 1e-05 in PyTorch's LayerNorm. MindSpore's "
        "LayerNorm was run with the golden's inputs: with 1e-05 it gives the golden's results, with 0.01 it does not "
        "(the error is then "
    )
    assert said.endswith(" times what is allowed)")


def test_a_call_whose_setting_differs_is_never_right_however_little_it_does() -> None:
    golden = layer_norm(framework="pytorch")
    for epsilon in (1e-6, 1.1e-5, 1e-7):
        proof = of(layer_norm(epsilon), golden)
        assert proof.finding is Finding.SETTING
        assert "of their size. Rounding may change them as much" in proof.sentence
    fed = of(layer_norm(1e-6, input=floats(4, 6, 8, seed=2)), golden, "Cell.fc.Dense.forward.0")
    assert fed.finding is Finding.SETTING
    assert "look at Cell.fc.Dense.forward.0" in fed.notes[0]


def test_a_setting_that_these_results_do_not_show_is_undecided() -> None:
    zeros = TypedArray("float32", np.zeros(8, np.float32))
    proof = of(layer_norm(1e-6, weight=zeros), layer_norm(weight=zeros))
    assert proof.finding is Finding.UNDECIDED
    assert "would be the same with either value" in proof.sentence


def test_a_call_that_is_fed_something_else_is_right_and_names_what_made_it() -> None:
    proof = of(layer_norm(input=floats(4, 6, 8, seed=2)), layer_norm(), "Cell.fc.Dense.forward.0")
    assert proof.finding is Finding.INPUT
    assert proof.finding.is_right
    assert "look at Cell.fc.Dense.forward.0" in proof.sentence


def test_exchanged_parameters_are_called_so() -> None:
    one, other = floats(8), floats(8, seed=1)
    proof = of(layer_norm(weight=other, bias=one), layer_norm(weight=one, bias=other))
    assert proof.finding is Finding.EXCHANGED
    assert "exchanged arguments: `weight` and `bias`;" in proof.sentence


def test_a_gradient_that_arrives_otherwise_is_of_the_calls_after() -> None:
    target, golden = (
        replace(layer_norm(), output_gradients=(floats(4, 6, 8, seed=seed),)) for seed in (7, 8)
    )  # fmt: skip
    assert (
        "MindSpore's LayerNorm is right, but the gradient that arrives at it already differs"
        in of(target, golden).sentence
    )


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
    assert "arrives (it is 2 times the right one)" in twice.sentence
    cut = with_gradients(layer_norm(), times=0.0)
    assert "(it is zero throughout)" in decide(cut, golden, lambda slot: "").sentence


def test_proofs_are_told_whole_in_chinese_and_written_in_english() -> None:
    golden = with_gradients(layer_norm(framework="pytorch"))
    broken = (floats(4, 6, 8, seed=3),)
    x = floats(4, 8)
    proofs = [
        decide(target, other, lambda slot: "Cell.fc.Dense.forward.0", backward=True)
        for target, other in (
            (layer_norm(), golden),
            (layer_norm(), None),
            (layer_norm(1e-2, weight=floats(8, seed=4)), golden),
            (layer_norm(1e-6, input=floats(4, 6, 8, seed=2)), golden),
            (layer_norm(weight=floats(8, seed=4)), golden),
            (replace(layer_norm(), outputs=broken), golden),
            (layer_norm(), replace(golden, outputs=broken)),
            (replace(layer_norm(), outputs=None), golden),
            (made("silu", input=x), made("gelu", framework="pytorch", input=x)),
            (with_gradients(layer_norm(), 8), golden),
            (with_gradients(layer_norm(), times=2.0), golden),
        )
    ]
    for proof in proofs:
        written = json.loads(json.dumps(proof.to_json()))
        assert written["sentence"].isascii() and all(note.isascii() for note in written["notes"])
        with speaking("zh"):
            told = [*map(translated, (proof.sentence, *proof.notes)), *(translated(each.what) for each in proof.trials)]
        assert not [text for text in told if re.search("[A-Za-z]{3,} [a-z]{2,}", text)]
