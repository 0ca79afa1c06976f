"""Which reference stands for which API and primitive of MindSpore. Signatures are those of MindSpore 2.10."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from msprobe_ms.accuracy.references.activation import fast_gelu, gelu, mish, silu, swiglu
from msprobe_ms.accuracy.references.attention.bias import SCALED_THEN_ADDED
from msprobe_ms.accuracy.references.attention.flash_attention import flash_attention
from msprobe_ms.accuracy.references.layout import sort
from msprobe_ms.accuracy.references.linear import linear
from msprobe_ms.accuracy.references.loss import cross_entropy
from msprobe_ms.accuracy.references.mixture_of_experts import gating_top_k_softmax, token_permute, token_unpermute
from msprobe_ms.accuracy.references.normalization import (
    add_layer_norm,
    add_rms_norm,
    group_norm,
    layer_norm,
    rms_norm,
)
from msprobe_ms.accuracy.references.optimizer import adam_w_by_step, adam_w_in_arguments, adam_weight_decay
from msprobe_ms.accuracy.references.reference import Computed, FusedReference, NotReproducible
from msprobe_ms.accuracy.references.rotary import rotary
from msprobe_ms.accuracy.references.signatures import operator
from msprobe_ms.support.translation import tr

_TOKENS = "pre_tokens: before = 2147483647, next_tokens: after = 2147483647, inner_precise: unread = 0"
_LENGTHS = "prefix=None, actual_seq_qlen: query_ends = None, actual_seq_kvlen: key_ends = None"
_FLASH_MASKS = "real_shift: pse = None, drop_mask=None, padding_mask: default_only = None, attn_mask: mask = None"
_FLASH = (
    f"query, key, value, head_num, {_FLASH_MASKS}, {_LENGTHS}, keep_prob=1.0, scalar_value: scale = 1.0, {_TOKENS}, "
    "input_layout: layout = 'BSH', sparse_mode=0"
)
_SPEED = (
    "pse=None, padding_mask: default_only = None, atten_mask: mask = None, scale=1.0, keep_prob=1.0, "
    f"{_TOKENS}, {_LENGTHS}, sparse_mode=0, gen_mask_parallel: unread = True, sync: unread = False, pse_type=1, "
    "q_start_idx: query_start = None, kv_start_idx: key_start = None"
)
_INPUT = "input: x"
_LINEAR = "input: x, weight, bias=None"
_LAYER_NORM = "input: x, normalized_shape, weight=None, bias=None, eps: epsilon = 1e-05"
_GROUP_NORM = "input: x, num_groups: groups, weight=None, bias=None, eps: epsilon = 1e-05"
_CROSS_ENTROPY = "input: x, target, weight=None, ignore_index=-100, reduction='mean', label_smoothing=0.0"
_PERMUTE = "tokens, indices, num_out_tokens=None, padded_mode=False"
_UNPERMUTE = "permuted_tokens: permuted, sorted_indices, probs=None, padded_mode=False, restore_shape=None"
_ADAM_W = (
    "var, m, v, beta1_power, beta2_power, lr, weight_decay, beta1, beta2, epsilon, grad, "
    "max_grad_norm: largest = None, amsgrad=False, maximize=False"
)
#: Sparse modes from 6 on are in the documents and not in the operators.
_MODES = {"modes": 6}


def not_known(**_: Any) -> Computed:
    """Stands for a primitive whose results nobody has held against a formula on a device that has it.

    :raises NotReproducible: always
    """
    raise NotReproducible(tr("the order of its results is not known here"))


def _functional() -> Iterable[FusedReference]:
    """``mindspore.ops``."""
    yield operator("rms_norm", rms_norm, "x, gamma, epsilon=1e-06")
    yield operator("add_rms_norm", add_rms_norm, "x1, x2, gamma, epsilon=1e-06")
    yield operator("add_layer_norm", add_layer_norm, "x1, x2, gamma, beta, epsilon=1e-05, additional_output=False")
    yield operator("layer_norm", layer_norm, _LAYER_NORM)
    yield operator("group_norm", group_norm, _GROUP_NORM)
    yield operator("rotary_position_embedding", rotary, "x, cos, sin, mode=0")
    yield operator("swiglu", swiglu, "input: x, dim=-1")
    yield operator("fast_gelu", fast_gelu, "x")
    yield operator("gelu", gelu, "input: x, approximate='none'")
    yield operator("silu", silu, _INPUT)
    yield operator("mish", mish, "x")
    yield operator("dense", linear, _LINEAR)
    yield operator("cross_entropy", cross_entropy, _CROSS_ENTROPY)
    yield operator("sort", sort, "input_x: x, axis: dim = -1, descending=False", {"stable": False})
    yield operator("moe_token_permute", token_permute, _PERMUTE)
    yield operator("moe_token_unpermute", token_unpermute, _UNPERMUTE)
    yield operator(
        "flash_attention_score",
        flash_attention,
        _FLASH,
        {"pse_type": SCALED_THEN_ADDED, "result_alone": True, **_MODES},
    )  # fmt: skip
    yield operator(
        "speed_fusion_attention", flash_attention,
        f"query, key, value, head_num, input_layout: layout, *, {_SPEED}", _MODES,
    )  # fmt: skip


def _mint() -> Iterable[FusedReference]:
    """``mindspore.mint``."""
    yield operator("npu_gelu", gelu, "input: x, approximate='none'")
    yield operator("sort", sort, "input: x, *, dim=-1, descending=False, stable=False")


def _mint_functional() -> Iterable[FusedReference]:
    """``mindspore.mint.nn.functional``."""
    yield operator("layer_norm", layer_norm, _LAYER_NORM)
    yield operator("group_norm", group_norm, _GROUP_NORM)
    yield operator("gelu", gelu, "input: x, *, approximate='none'")
    yield operator("silu", silu, "input: x, inplace: unread = False")
    yield operator("mish", mish, _INPUT)
    yield operator("linear", linear, _LINEAR)
    yield operator("cross_entropy", cross_entropy, _CROSS_ENTROPY)


def _primitives() -> Iterable[FusedReference]:
    """Keywords are what a primitive was made with; dumps of other tools do not hold them."""
    yield operator("AddRmsNorm", add_rms_norm, "x1, x2, gamma, epsilon=1e-06")
    yield operator(
        "AddLayerNormV2", add_layer_norm,
        "x1, x2, gamma, beta, epsilon=1e-05, additionalOut: additional_output = False",
    )  # fmt: skip
    yield operator("LayerNormExt", layer_norm, _LAYER_NORM, {"with_statistics": True})
    yield operator("GroupNorm", group_norm, _GROUP_NORM, {"with_statistics": True})
    yield operator("RotaryPositionEmbedding", rotary, "x, cos, sin, mode=0")
    yield operator("Swiglu", swiglu, "input: x, dim=-1")
    yield operator("FastGeLU", fast_gelu, "x")
    yield operator("GeLU", gelu, _INPUT, {"approximate": "tanh"})
    yield operator("GeluExt", gelu, "input: x, approximate='none'")
    yield operator("SiLU", silu, _INPUT)
    yield operator("Mish", mish, "x")
    yield operator("MishExt", mish, _INPUT)
    yield operator("Dense", linear, _LINEAR)
    yield operator("SortExt", sort, "input: x, dim=-1, descending=False, stable=False")
    yield operator("MoeTokenPermute", token_permute, _PERMUTE)
    yield operator("MoeTokenUnpermute", token_unpermute, _UNPERMUTE)
    yield operator("MoeGatingTopKSoftmax", gating_top_k_softmax, "x, finished=None, k=1")
    yield operator("ApplyAdamW", adam_w_in_arguments, _ADAM_W)
    yield operator(
        "AdamW", adam_w_by_step,
        "var, m, v, max_v, gradient, step, lr, beta1, beta2, decay, eps, amsgrad=False, maximize=False",
    )  # fmt: skip
    yield operator("AdamWeightDecay", adam_weight_decay, "var, m, v, lr, beta1, beta2, epsilon, decay, gradient")
    yield operator(
        "SpeedFusionAttention", flash_attention,
        f"query, key, value, head_num, input_layout: layout, seed: unread, offset: unread, {_SPEED}", _MODES,
    )  # fmt: skip
    yield operator("RmsNorm", rms_norm, "x, gamma, *, epsilon")  # which it was made with
    yield operator("FlashAttentionScore", not_known, f"query, key, value, {_FLASH_MASKS}, {_LENGTHS}")


def operators() -> Mapping[tuple[str, str], FusedReference]:
    """Return the references by prefix and name; primitives by the name of their class."""
    by_prefix = {
        "Functional": _functional(), "Mint": _mint(), "MintFunctional": _mint_functional(), "Primitive": _primitives(),
    }  # fmt: skip
    return MappingProxyType({(prefix, each.name): each for prefix, found in by_prefix.items() for each in found})
