"""Normalizations: formulae written out, gradients against differences, and faults that are told apart."""

from __future__ import annotations

import numpy as np
import pytest
from reference_calls import assert_gradients, gradients, normal, outputs, reference

from msprobe_ms.accuracy.references import NotJudged, NotReproducible

RMS, ADD_RMS = reference("npu_rms_norm"), reference("npu_add_rms_norm")
LAYER, GROUP_SILU = reference("npu_layer_norm_eval"), reference("npu_group_norm_silu")
ADD_LAYER = reference("add_layer_norm", "Functional", "mindspore")


@pytest.mark.parametrize(("shape", "axes"), [((3, 8), 1), ((2, 3, 4), 1), ((2, 3, 4), 2), ((5,), 1)])
def test_rms_norm(shape: tuple[int, ...], axes: int) -> None:
    x, gamma = normal(*shape), normal(*shape[-axes:], seed=1)
    over = tuple(range(-axes, 0))
    root = np.sqrt(np.mean(x**2, axis=over, keepdims=True) + 1e-6)
    y, rstd = outputs(RMS, x, gamma)
    np.testing.assert_allclose(y, x / root * gamma, rtol=1e-14)
    np.testing.assert_allclose(rstd, 1 / root, rtol=1e-14)
    assert rstd.shape == (*shape[:-axes], *[1] * axes)
    assert_gradients(RMS, x, gamma)


def test_the_epsilon_of_rms_norm_is_inside_the_root_and_1e_6() -> None:
    x, gamma = np.full((1, 4), 1e-3), np.ones(4)
    mean = 1e-6
    y = outputs(RMS, x, gamma)[0]
    np.testing.assert_allclose(y, 1e-3 / np.sqrt(mean + 1e-6), rtol=1e-12)
    outside, other_default = 1e-3 / (np.sqrt(mean) + 1e-6), 1e-3 / np.sqrt(mean + 1e-5)
    assert np.all(np.abs(y - outside) > 0.1) and np.all(np.abs(y - other_default) > 0.1)


def test_the_gradient_of_gamma_is_summed() -> None:
    x, gamma, g = normal(2, 3, 4), np.ones(4), normal(2, 3, 4, seed=1)
    _, of_gamma = gradients(RMS, [g], x, gamma)
    n, _ = outputs(RMS, x, gamma)
    assert of_gamma.shape == (4,)
    np.testing.assert_allclose(of_gamma, (g * n).sum(axis=(0, 1)), rtol=1e-13)


def test_gamma_must_fit() -> None:
    with pytest.raises(NotReproducible, match=r"last axes of shape \(2, 4\) are not \(3,\)"):
        outputs(RMS, normal(2, 4), normal(3))


def test_add_rms_norm_gives_the_sum_too_and_takes_its_gradient() -> None:
    x1, x2, gamma = normal(3, 6), normal(3, 6, seed=1), normal(6)
    y, rstd, x = outputs(ADD_RMS, x1, x2, gamma)
    np.testing.assert_array_equal(x, x1 + x2)
    np.testing.assert_array_equal([y, rstd][0], outputs(RMS, x1 + x2, gamma)[0])
    assert_gradients(ADD_RMS, x1, x2, gamma)
    of_x = normal(3, 6, seed=2)
    first, second, _ = gradients(ADD_RMS, [np.zeros((3, 6)), np.zeros((3, 1)), of_x], x1, x2, gamma)
    np.testing.assert_array_equal(first, of_x)
    np.testing.assert_array_equal(second, of_x)


@pytest.mark.parametrize("normalized", [[4], [3, 4], (4,), 4])
def test_layer_norm_applies_weight_bias_and_epsilon(normalized: object) -> None:
    shape = (normalized,) if isinstance(normalized, int) else tuple(normalized)  # type: ignore[arg-type]
    x, weight, bias = normal(2, 3, 4) / 30, normal(*shape), normal(*shape, seed=1)
    over = tuple(range(-len(shape), 0))
    centred = x - x.mean(axis=over, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(axis=over, keepdims=True) + 1e-3) * weight + bias
    np.testing.assert_allclose(outputs(LAYER, x, normalized, weight, bias, 1e-3)[0], expected, rtol=1e-12)
    assert_gradients(LAYER, 30 * x, normalized, weight, bias, 1e-3)
    assert_gradients(LAYER, 30 * x, normalized)


def test_layer_norm_with_a_large_mean_keeps_its_digits() -> None:
    x = normal(2, 64)
    np.testing.assert_allclose(outputs(LAYER, x + 1e6, [64])[0], outputs(LAYER, x, [64])[0], atol=1e-8)


@pytest.mark.parametrize("asked", [False, True])
def test_add_layer_norm(asked: bool) -> None:
    x1, x2, gamma, beta = normal(3, 6), normal(3, 6, seed=1), normal(6), normal(6, seed=2)
    y, mean, rstd, x = outputs(ADD_LAYER, x1, x2, gamma, beta, 1e-5, asked)
    np.testing.assert_array_equal(y, outputs(LAYER, x1 + x2, [6], gamma, beta)[0])
    assert mean.shape == rstd.shape == (3, 1)
    assert isinstance(x, np.ndarray) == asked and isinstance(x, NotJudged) != asked
    assert_gradients(ADD_LAYER, x1, x2, gamma, beta)


@pytest.mark.parametrize(("shape", "groups"), [((2, 6), 3), ((2, 6, 5), 2), ((2, 4, 3, 2), 4), ((1, 4, 2, 2, 2), 2)])
def test_group_norm_silu_of_any_number_of_axes(shape: tuple[int, ...], groups: int) -> None:
    x, weight, bias = normal(*shape), normal(shape[1]), normal(shape[1], seed=1)
    parts = x.reshape(shape[0], groups, -1)
    mean, var = parts.mean(-1), parts.var(-1)
    n = ((parts - mean[..., None]) / np.sqrt(var[..., None] + 1e-5)).reshape(shape)
    channel = (-1, *[1] * (len(shape) - 2))
    y = n * weight.reshape(channel) + bias.reshape(channel)
    found = outputs(GROUP_SILU, x, weight, bias, groups)
    for value, expected in zip(found, (y / (1 + np.exp(-y)), mean, 1 / np.sqrt(var + 1e-5)), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-11, atol=1e-14)
    assert_gradients(GROUP_SILU, x, weight, bias, groups)
    assert_gradients(GROUP_SILU, x, None, None, group=groups)


def test_channels_must_divide_into_groups() -> None:
    with pytest.raises(NotReproducible, match="5 channels in 2 groups"):
        outputs(GROUP_SILU, normal(1, 5, 2), None, None, 2)


def test_primitives_give_the_statistics_too() -> None:
    x = normal(2, 4, 3)
    for name, given, shape in (("LayerNormExt", [4, 3], (2, 1, 1)), ("GroupNorm", 2, (2, 2))):
        found = outputs(reference(name, "Primitive", "mindspore"), x, given)
        assert [each.shape for each in found] == [x.shape, shape, shape]


def test_rms_norm_of_pytorch_needs_its_epsilon() -> None:
    own = reference("rms_norm", "Functional")
    x, weight = normal(2, 4), normal(4)
    np.testing.assert_array_equal(outputs(own, x, [4], weight, 1e-6)[0], outputs(RMS, x, weight)[0])
    assert_gradients(own, x, [4], weight, 1e-3)
    assert_gradients(own, x, [4], None, 1e-3)
    with pytest.raises(NotReproducible, match="epsilon"):
        outputs(own, x, [4])
