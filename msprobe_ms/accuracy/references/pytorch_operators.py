"""Which reference stands for which operator of torch_npu, and which API of PyTorch itself.

The operators go by the same names under ``torch_npu``, ``torch`` and ``torch.ops.npu``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from msprobe_ms.accuracy.references.activation import fast_gelu, fast_gelu_backward, gelu, mish, silu, swiglu
from msprobe_ms.accuracy.references.attention.flash_attention import flash_attention, scaled_dot_product_attention
from msprobe_ms.accuracy.references.layout import confusion_transpose, dtype_cast, sort
from msprobe_ms.accuracy.references.linear import linear, linear_backward, matmul_backward
from msprobe_ms.accuracy.references.loss import cross_entropy
from msprobe_ms.accuracy.references.mixture_of_experts import gating_top_k_softmax, token_permute, token_unpermute
from msprobe_ms.accuracy.references.normalization import (
    add_rms_norm,
    group_norm,
    group_norm_silu,
    layer_norm,
    rms_norm,
    rms_norm_alone,
)
from msprobe_ms.accuracy.references.optimizer import adam, adam_w
from msprobe_ms.accuracy.references.reference import FusedReference
from msprobe_ms.accuracy.references.rotary import rotary
from msprobe_ms.accuracy.references.signatures import operator
from msprobe_ms.accuracy.references.softmax import scaled_masked_softmax, scaled_masked_softmax_backward

#: Prefixes that calls of operators of torch_npu are recorded under.
_PREFIXES = ("NPU", "Torch", "Tensor", "Functional", "Aten")

_QUERIES = "query, key, value, head_num, input_layout: layout"
_MASKS = "pse=None, padding_mask: default_only = None, atten_mask: mask = None, scale=1.0, keep_prob=1.0"
_LENGTHS = (
    "inner_precise: unread = 0, prefix=None, actual_seq_qlen: query_ends = None, actual_seq_kvlen: key_ends = None, "
    "sparse_mode=0, gen_mask_parallel: unread = True, sync: unread = False"
)
_UNBOUNDED = 2147483647
_LINEAR = "input: x, weight, bias=None"
_ADAM = "beta1_power, beta2_power, lr"
_LAYER_NORM = "input: x, normalized_shape, weight=None, bias=None, eps: epsilon = 1e-05"
_SCALED_MASKED = "mask, scale=1, fixed_triu_mask=False"


def _fused() -> Iterable[FusedReference]:
    """Operators of torch_npu."""
    yield operator(
        "npu_fusion_attention", flash_attention,
        f"{_QUERIES}, {_MASKS}, pre_tockens: before = {_UNBOUNDED}, next_tockens: after = {_UNBOUNDED}, {_LENGTHS}, "
        "softmax_layout=''",
    )  # fmt: skip
    yield operator(
        "npu_fusion_attention_v2", flash_attention,
        f"{_QUERIES}, *, {_MASKS}, pre_tokens: before = {_UNBOUNDED}, next_tokens: after = {_UNBOUNDED}, {_LENGTHS}, "
        "pse_type=1, q_start_idx: query_start = None, kv_start_idx: key_start = None, softmax_layout=''",
    )  # fmt: skip
    yield operator("npu_rms_norm", rms_norm, "self: x, gamma, epsilon=1e-06")
    yield operator("npu_add_rms_norm", add_rms_norm, "x1, x2, gamma, epsilon=1e-06")
    yield operator("npu_layer_norm_eval", layer_norm, _LAYER_NORM)
    yield operator(
        "npu_group_norm_silu", group_norm_silu, "input: x, weight, bias, group: groups, eps: epsilon = 0.00001"
    )
    yield operator("npu_rotary_mul", rotary, "input: x, r1: cos, r2: sin, rotary_mode: mode = 'half'")
    yield operator("npu_swiglu", swiglu, "x, dim=-1")
    for name in ("fast_gelu", "npu_fast_gelu"):
        yield operator(name, fast_gelu, "self: x")
    yield operator("npu_fast_gelu_backward", fast_gelu_backward, "grad, self: x")
    yield operator("npu_gelu", gelu, "self: x, *, approximate='none'")
    yield operator("npu_silu", silu, "self: x")
    yield operator("npu_mish", mish, "self: x")
    yield operator("npu_linear", linear, _LINEAR)
    yield operator("npu_linear_backward", linear_backward, "grad, input: x, weight")
    yield operator("matmul_backward", matmul_backward, "grad, self: first, other: second, mask=(True, True)")
    yield operator("npu_scaled_masked_softmax", scaled_masked_softmax, f"x, {_SCALED_MASKED}")
    yield operator(
        "npu_scaled_masked_softmax_backward",
        scaled_masked_softmax_backward,
        f"y_grad: grad, y, {_SCALED_MASKED}",
    )
    yield operator("npu_confusion_transpose", confusion_transpose, "self: x, perm, shape, transpose_first")
    yield operator("npu_dtype_cast", dtype_cast, "self: x, dtype")
    yield operator("npu_sort_v2", sort, "self: x, dim=-1, descending=False", {"with_indices": False})
    yield operator(
        "npu_apply_adam", adam,
        f"{_ADAM}, beta1, beta2, epsilon, grad, use_locking: unread = None, use_nesterov=None, *, out",
    )  # fmt: skip
    yield operator(
        "npu_apply_adam_w", adam_w,
        f"{_ADAM}, weight_decay, beta1, beta2, epsilon, grad, max_grad_norm: largest = None, amsgrad=False, "
        "maximize=False, *, out",
    )  # fmt: skip
    yield operator("npu_moe_gating_top_k_softmax", gating_top_k_softmax, "x, finished=None, k=1")
    yield operator("npu_moe_token_permute", token_permute, "tokens, indices, num_out_tokens=None, padded_mode=False")
    yield operator(
        "npu_moe_token_unpermute", token_unpermute,
        "permuted_tokens: permuted, sorted_indices, probs=None, padded_mode=False, restore_shape=None",
    )  # fmt: skip


def _own() -> Iterable[FusedReference]:
    """What PyTorch itself has of the same formulae, in ``torch.nn.functional``."""
    yield operator("gelu", gelu, "input: x, *, approximate='none'")
    yield operator("silu", silu, "input: x, inplace: unread = False")
    yield operator("mish", mish, "input: x, inplace: unread = False")
    yield operator("linear", linear, _LINEAR)
    yield operator("rms_norm", rms_norm_alone, "input: x, normalized_shape, weight=None, eps: epsilon = None")
    yield operator("layer_norm", layer_norm, _LAYER_NORM)
    yield operator(
        "group_norm", group_norm, "input: x, num_groups: groups, weight=None, bias=None, eps: epsilon = 1e-05"
    )
    yield operator(
        "cross_entropy", cross_entropy,
        "input: x, target, weight=None, size_average: default_only = None, ignore_index=-100, "
        "reduce: default_only = None, reduction='mean', label_smoothing=0.0",
    )  # fmt: skip
    yield operator(
        "scaled_dot_product_attention", scaled_dot_product_attention,
        "query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False",
    )  # fmt: skip


def operators() -> Mapping[tuple[str, str], FusedReference]:
    """Return the references by prefix and name."""
    found = {(prefix, each.name): each for each in _fused() for prefix in _PREFIXES}
    found.update((("Functional", each.name), each) for each in _own())
    return MappingProxyType(found)
