"""Activations: values known from elsewhere, and gradients against differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference_calls import assert_gradients, normal, outputs, reference

from msprobe_ms.accuracy.references import NotReproducible

SIMPLE = ("npu_fast_gelu", "fast_gelu", "npu_silu", "npu_mish", "npu_gelu")


@pytest.mark.parametrize("api", SIMPLE)
def test_gradients_are_those_of_the_results(api: str) -> None:
    assert_gradients(reference(api), 2 * normal(3, 5))


def test_the_tanh_form_of_gelu_has_its_own_gradient() -> None:
    assert_gradients(reference("npu_gelu"), 2 * normal(3, 5), approximate="tanh")


@pytest.mark.parametrize(("shape", "dim"), [((4, 6), -1), ((4, 6), 0), ((2, 4, 3), 1)])
def test_swiglu_halves_any_axis(shape: tuple[int, ...], dim: int) -> None:
    x = normal(*shape)
    a, b = np.split(x, 2, axis=dim)
    np.testing.assert_allclose(outputs(reference("npu_swiglu"), x, dim)[0], a / (1 + np.exp(-a)) * b, rtol=1e-14)
    assert_gradients(reference("npu_swiglu"), x, dim=dim)


def test_an_odd_axis_has_no_halves() -> None:
    with pytest.raises(NotReproducible, match=r"axis -1 of shape \(2, 3\) has no halves"):
        outputs(reference("npu_swiglu"), normal(2, 3))


def test_values_that_tables_have() -> None:
    x = np.array([-40.0, -1.0, 0.0, 1.0, 800.0])
    (gelu,) = outputs(reference("npu_gelu"), x)
    # Where 1 + erf cancels, erfc does not.
    np.testing.assert_allclose(gelu, [-40 * 0.5 * math.erfc(40 / math.sqrt(2)), -0.15865525393145707, 0,
                                      0.8413447460685429, 800], rtol=1e-15)  # fmt: skip
    (silu,) = outputs(reference("npu_silu"), np.array([-800.0, -1.0, 1.0, 800.0]))
    np.testing.assert_allclose(silu, [0, -1 / (1 + math.e), 1 / (1 + math.exp(-1)), 800], atol=1e-300)
    (mish,) = outputs(reference("npu_mish"), np.array([-800.0, 0.0, 1.0, 800.0]))
    np.testing.assert_allclose(mish, [0, 0, math.tanh(math.log1p(math.e)), 800], rtol=1e-15)


def test_fast_gelu_is_what_the_operator_is_documented_to_compute() -> None:
    x = 3 * normal(50)
    documented = x * np.exp(0.851 * (x - np.abs(x))) / (1 + np.exp(-1.702 * np.abs(x)))
    np.testing.assert_allclose(outputs(reference("npu_fast_gelu"), x)[0], documented, rtol=1e-13)


def test_gradients_of_large_numbers_are_finite() -> None:
    for api in SIMPLE:
        (gradient,) = _gradient(api, np.array([-1e4, -700.0, 700.0, 1e4]))
        np.testing.assert_allclose(gradient, [0, 0, 1, 1], atol=1e-12, err_msg=api)


def test_the_backward_of_fast_gelu_is_an_operator_of_its_own() -> None:
    x, g = normal(4, 3), normal(4, 3, seed=1)
    (expected,) = _gradient("npu_fast_gelu", x, g)
    np.testing.assert_array_equal(outputs(reference("npu_fast_gelu_backward"), g, x)[0], expected)


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(NotReproducible, match="none and tanh"):
        outputs(reference("npu_gelu"), normal(2), approximate="sigmoid")


def _gradient(api: str, x: np.ndarray, g: np.ndarray | None = None) -> list[np.ndarray]:
    from reference_calls import gradients

    return gradients(reference(api), [np.ones_like(x) if g is None else g], x)
