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


@pytest.mark.parametrize("name", ["RmsNorm", "FlashAttentionScore"])
def test_primitives_with_settings_of_their_own_are_refused(name: str) -> None:
    found = reference(name, "Primitive", "mindspore")
    given = [normal(2, 4)] * (2 if name == "RmsNorm" else 3)
    with pytest.raises(NotReproducible, match="attributes of the operator object are not recorded"):
        outputs(found, *given)


def test_the_primitive_of_fused_attention_has_two_arguments_more() -> None:
    q, k, v = normal(1, 2, 3, 4), normal(1, 2, 3, 4, seed=1), normal(1, 2, 3, 4, seed=2)
    primitive = reference("SpeedFusionAttention", "Primitive", "mindspore")
    function = reference("speed_fusion_attention", "Functional", "mindspore")
    for one, other in zip(
        outputs(primitive, q, k, v, 2, "BNSD", 1, 0)[:3], outputs(function, q, k, v, 2, "BNSD")[:3], strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert_gradients(primitive, q, k, v, 2, "BNSD", np.array(1), np.array(0))
