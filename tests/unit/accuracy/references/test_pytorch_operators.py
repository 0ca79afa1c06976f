"""The operators of torch_npu that documents list have a reference, under every prefix that calls are recorded with."""

from __future__ import annotations

import pytest

from msprobe_ms.accuracy.references.pytorch_operators import operators

LISTED = (
    "npu_rms_norm", "npu_rotary_mul", "npu_swiglu", "fast_gelu", "npu_fast_gelu", "npu_fast_gelu_backward",
    "npu_linear", "npu_linear_backward", "npu_layer_norm_eval", "npu_scaled_masked_softmax", "npu_confusion_transpose",
    "npu_dtype_cast", "npu_mish", "npu_sort_v2", "npu_group_norm_silu", "npu_apply_adam", "npu_apply_adam_w",
    "npu_moe_gating_top_k_softmax", "npu_fusion_attention", "matmul_backward",
)  # fmt: skip


@pytest.mark.parametrize("name", LISTED)
def test_listed_operators_have_a_reference(name: str) -> None:
    assert {prefix for prefix, each in operators() if each == name} >= {"NPU", "Torch", "Aten"}


def test_defaults_are_those_of_the_documents() -> None:
    found = operators()
    assert str(found["NPU", "npu_rms_norm"].signature) == "(self, gamma, epsilon=1e-06)"
    assert str(found["NPU", "npu_rotary_mul"].signature) == "(input, r1, r2, rotary_mode='half')"
    assert list(found["NPU", "npu_fusion_attention"].signature.parameters)[:12] == [
        "query", "key", "value", "head_num", "input_layout", "pse", "padding_mask", "atten_mask", "scale", "keep_prob",
        "pre_tockens", "next_tockens",
    ]  # fmt: skip
