"""A reference as checkers call it: arguments bound by the operator's signature, gradients in the order of the call."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from reference_calls import arguments, gradients, normal, outputs, reference

from msprobe_ms.accuracy.references import NotJudged, NotReproducible
from msprobe_ms.accuracy.references.reference import sum_to
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks.api_calls import Arguments

RMS = reference("npu_rms_norm")
X, GAMMA, G = normal(3, 4), normal(4), normal(3, 4, seed=1)


def test_results_are_in_float64_whatever_the_call_is_in() -> None:
    narrow = [TypedArray("bfloat16", each.astype(np.float32)) for each in (X, GAMMA)]
    outcome = RMS.run(Arguments(tuple(narrow)), [TypedArray("float32", G.astype(np.float32)), None])
    found = (*outcome.outputs, *outcome.gradients)
    assert [each.dtype for each in found] == ["float64"] * 4
    assert [each.values.dtype.name for each in found] == ["float64"] * 4


def test_gradients_follow_the_order_of_the_call() -> None:
    of_x, of_gamma = gradients(RMS, [G], X, GAMMA)
    for found in (gradients(RMS, [G], gamma=GAMMA, self=X), gradients(RMS, [G], gamma=GAMMA, self=X)):
        np.testing.assert_array_equal(found[0], of_gamma)
        np.testing.assert_array_equal(found[1], of_x)


@pytest.mark.parametrize("name", ["self", "input", "x"])
def test_the_first_tensor_goes_by_any_of_its_names(name: str) -> None:
    found = gradients(RMS, [G], gamma=GAMMA, **{name: X})
    np.testing.assert_array_equal(found[1], gradients(RMS, [G], X, GAMMA)[0])
    with pytest.raises(NotReproducible, match=r"multiple values for argument 'self'"):
        outputs(RMS, X, gamma=GAMMA, **{name: X})


def test_only_floats_have_a_place_among_gradients() -> None:
    masked = reference("npu_scaled_masked_softmax")
    assert len(gradients(masked, [G], X, np.zeros((3, 4), bool))) == 1
    assert len(gradients(masked, [G], X, np.zeros((3, 4)))) == 2
    assert gradients(masked, [G], X, np.zeros((3, 4)))[1] is None


def test_without_gradients_none_are_computed() -> None:
    assert RMS.run(arguments(X, GAMMA)).gradients == ()
    assert RMS.run(arguments(X, GAMMA), [None, NotJudged("left out")]).gradients == (None, None)


@pytest.mark.parametrize(("call", "reason"), [
    (arguments(X), "missing a required argument: 'gamma'; the signature known is npu_rms_norm"),
    (arguments(X, GAMMA, 1e-6, 2), r"too many positional arguments; .*\(self, gamma, epsilon=1e-06\)"),
    (arguments(X, GAMMA, eps=1e-6), "unexpected keyword argument 'eps'"),
    (arguments(X, "gamma"), "the reference of npu_rms_norm cannot take it"),
])  # fmt: skip
def test_arguments_that_are_not_the_operator_s_are_refused(call: Arguments, reason: str) -> None:
    with pytest.raises(NotReproducible, match=reason) as refused:
        RMS.run(call)
    assert refused.value.reason == str(refused.value)


def test_gradients_that_do_not_fit_the_outputs_are_refused() -> None:
    with pytest.raises(NotReproducible, match="1 gradients for 2 outputs"):
        RMS.run(arguments(X, GAMMA), [None])
    with pytest.raises(NotReproducible, match=r"shape \(4,\) for an output of shape \(3, 4\)"):
        RMS.run(arguments(X, GAMMA), [TypedArray("float64", GAMMA), None])


def test_arguments_are_left_as_they_are() -> None:
    kept = X.copy(), GAMMA.copy()
    gradients(RMS, [G], X, GAMMA)
    outputs(reference("npu_swiglu"), X)
    np.testing.assert_array_equal(X, kept[0])
    np.testing.assert_array_equal(GAMMA, kept[1])


def test_sums_go_over_the_axes_that_were_stretched() -> None:
    g = np.ones((2, 3, 4))
    assert sum_to(g, (3, 1)).tolist() == [[8], [8], [8]]
    assert sum_to(g, ()).tolist() == 24
    assert sum_to(g, (2, 3, 4)) is not None and sum_to(g, (1, 3, 4)).shape == (1, 3, 4)


@pytest.mark.processes
def test_no_framework_is_imported() -> None:
    code = "import sys, msprobe_ms.accuracy.references; print({'torch', 'mindspore'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
