"""APIs and primitives of MindSpore; their signatures are held against MindSpore's own in tests/frameworks."""

from __future__ import annotations

import numpy as np
import pytest
from reference_calls import assert_gradients, normal, outputs, reference

from msprobe_ms.accuracy.references import NotReproducible


def test_the_primitive_gelu_is_the_tanh_form() -> None:
    x = normal(3, 4)
    (found,) = outputs(reference("GeLU", "Primitive", "mindspore"), x)
    np.testing.assert_array_equal(found, outputs(reference("npu_gelu"), x, approximate="tanh")[0])
    assert np.abs(found - outputs(reference("npu_gelu"), x)[0]).max() > 1e-5


def test_the_primitive_rms_norm_takes_the_epsilon_that_it_was_made_with() -> None:
    x, gamma = normal(2, 4), normal(4, seed=1)
    primitive = reference("RmsNorm", "Primitive", "mindspore")
    function = reference("rms_norm", "Functional", "mindspore")
    np.testing.assert_array_equal(
        outputs(primitive, x, gamma, epsilon=0.1)[0], outputs(function, x, gamma, epsilon=0.1)[0]
    )
    with pytest.raises(NotReproducible, match="missing a required argument: 'epsilon'"):
        outputs(primitive, x, gamma)


def test_a_primitive_that_is_not_known_well_enough_is_refused() -> None:
    with pytest.raises(NotReproducible, match="the order of its results is not known here"):
        outputs(reference("FlashAttentionScore", "Primitive", "mindspore"), *[normal(2, 4)] * 3)


def test_the_primitive_of_fused_attention_has_two_arguments_more() -> None:
    q, k, v = normal(1, 2, 3, 4), normal(1, 2, 3, 4, seed=1), normal(1, 2, 3, 4, seed=2)
    primitive = reference("SpeedFusionAttention", "Primitive", "mindspore")
    function = reference("speed_fusion_attention", "Functional", "mindspore")
    for one, other in zip(
        outputs(primitive, q, k, v, 2, "BNSD", 1, 0)[:3], outputs(function, q, k, v, 2, "BNSD")[:3], strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert_gradients(primitive, q, k, v, 2, "BNSD", np.array(1), np.array(0))
