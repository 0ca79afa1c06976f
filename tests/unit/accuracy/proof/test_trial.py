"""Results held against a reference."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from proof_calls import floats, layer_norm

from msprobe_ms.accuracy.proof.trial import held_against, relative_error
from msprobe_ms.arrays.typed import TypedArray


def test_results_of_the_call_agree_and_altered_ones_do_not() -> None:
    call = layer_norm()
    reference = call.operation.in_double(call.arguments)
    assert call.outputs is not None
    right = held_against("as recorded", call, reference, call.outputs)
    assert (right.agrees, right.note) == (True, "")
    assert right.excess is not None
    assert right.excess <= 1
    altered = call.outputs[0].values.copy()
    altered[0, 0, 0] += 0.01
    wrong = held_against("altered", call, reference, [TypedArray("float32", altered)])
    assert wrong.agrees is False
    assert "(0, 0, 0)" in wrong.note


def test_gradients_are_judged_as_well() -> None:
    gradient = floats(4, 6, 8, seed=7)
    call = replace(layer_norm(), output_gradients=(gradient,))
    reference = call.operation.in_double(call.arguments, call.output_gradients)
    right = [TypedArray("float32", each.values.astype(np.float32)) for each in reference.gradients]
    assert held_against("", call, reference, call.outputs or (), right).agrees
    wrong = [TypedArray("float32", right[0].values * np.float32(1.1)), *right[1:]]
    trial = held_against("", call, reference, call.outputs or (), wrong)
    assert trial.agrees is False
    assert trial.note.startswith("output.0") or "backward" in trial.note
    assert held_against("", call, reference, call.outputs or (), [None, *right[1:]]).agrees, "one that is not known"


def test_nothing_beside_it_is_no_agreement() -> None:
    call = layer_norm()
    assert held_against("", call, call.operation.in_double(call.arguments), ()).agrees is None


def test_relative_errors_of_tensors() -> None:
    one = TypedArray("float32", np.float32([3, 4]))
    assert relative_error([one], [TypedArray("float32", np.float32([3, 4.5]))]) == 0.5 / np.hypot(3, 4.5)
    assert relative_error([one], [floats(3)]) == math.inf
