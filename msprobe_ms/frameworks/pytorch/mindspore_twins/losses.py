"""Twins of activations and losses."""

from __future__ import annotations

from typing import Any

import torch

from msprobe_ms.frameworks.pytorch.mindspore_twins.common import functional
from msprobe_ms.frameworks.pytorch.mindspore_twins.registry import twin


@twin("Functional.leaky_relu")
def leaky_relu(input: Any, alpha: float = 0.2) -> Any:
    return functional.leaky_relu(input, alpha)


@twin("Functional.relu")
def relu(input: Any, inplace: bool = False) -> Any:
    return functional.relu(input, inplace)


@twin("Functional.softmax")
def softmax(input: Any, axis: int = -1, *, dtype: torch.dtype | None = None) -> Any:
    return functional.softmax(input, axis, dtype=dtype)


@twin("Tensor.softmax")
def tensor_softmax(self: Any, axis: int = -1, dtype: torch.dtype | None = None) -> Any:
    return functional.softmax(self, axis, dtype=dtype)


@twin("Mint.softmax_ext", "MintFunctional.softmax")
def softmax_ext(input: Any, dim: int | None = None, dtype: torch.dtype | None = None) -> Any:
    return functional.softmax(input, _implicit(input) if dim is None else dim, dtype=dtype)


@twin("MintFunctional.log_softmax")
def log_softmax_ext(input: Any, dim: int | None = None, *, dtype: torch.dtype | None = None) -> Any:
    return functional.log_softmax(input, _implicit(input) if dim is None else dim, dtype=dtype)


def _implicit(tensor: Any) -> int:
    """The axis that softmax takes where none is named."""
    return 0 if tensor.dim() in (0, 1, 3) else 1


@twin("Functional.softmin")
def softmin(x: Any, axis: int = -1, *, dtype: torch.dtype | None = None) -> Any:
    return functional.softmin(x, axis, dtype=dtype)


@twin("Functional.log_softmax")
def log_softmax(logits: Any, axis: int = -1) -> Any:
    return functional.log_softmax(logits, axis)


@twin("Functional.soft_shrink", "Tensor.soft_shrink")
def soft_shrink(input: Any, lambd: float = 0.5) -> Any:
    return functional.softshrink(input, lambd)


@twin("Functional.gelu")
def gelu(input: Any, approximate: str = "none") -> Any:
    return functional.gelu(input, approximate=approximate)


@twin("Functional.fast_gelu")
def fast_gelu(x: Any) -> Any:
    return x * torch.sigmoid(1.702 * x)


@twin("Mint.npu_gelu")
def npu_gelu(input: Any, approximate: str = "none") -> Any:
    return functional.gelu(input, approximate=approximate)


@twin("Primitive.GeLU", "Primitive.Gelu")
def gelu_by_tanh(x: Any) -> Any:
    """The primitive takes the approximation, other than the function."""
    return functional.gelu(x, approximate="tanh")


@twin("MintFunctional.inplace_silu")
def silu_in_place(input: Any) -> Any:
    return functional.silu(input, inplace=True)


@twin("Functional.swiglu")
def swiglu(input: Any, dim: int = -1) -> Any:
    gate, value = torch.chunk(input, 2, dim)
    return functional.silu(gate) * value


@twin("Functional.binary_cross_entropy")
def binary_cross_entropy(logits: Any, labels: Any, weight: Any = None, reduction: str = "mean") -> Any:
    return functional.binary_cross_entropy(logits, labels, weight, reduction=reduction)


@twin("MintFunctional.binary_cross_entropy")
def mint_binary_cross_entropy(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Any:
    return functional.binary_cross_entropy(input, target, weight, reduction=reduction)


@twin("Functional.binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: str = "mean"
) -> Any:
    return functional.binary_cross_entropy_with_logits(
        input, target, weight, reduction=reduction, pos_weight=pos_weight
    )


@twin("MintFunctional.binary_cross_entropy_with_logits")
def mint_binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean", pos_weight: Any = None
) -> Any:
    return functional.binary_cross_entropy_with_logits(
        input, target, weight, reduction=reduction, pos_weight=pos_weight
    )


@twin("Functional.cross_entropy", "MintFunctional.cross_entropy")
def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    if target.is_floating_point():
        return functional.cross_entropy(input, target, weight, reduction=reduction, label_smoothing=label_smoothing)
    classes = 1 if input.dim() > 1 else 0
    logarithms = torch.log_softmax(input, classes)
    return nll_loss(logarithms, target, weight, ignore_index, reduction, label_smoothing)


@twin("MintFunctional.nll_loss")
def mint_nll_loss(
    input: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean"
) -> Any:
    return nll_loss(input, target, weight, ignore_index, reduction)


@twin("Functional.nll_loss")
def nll_loss(
    inputs: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """By its formula: torch has no derivative with respect to the weights."""
    if inputs.dim() == 1:
        inputs, target = inputs.unsqueeze(0), target.unsqueeze(0)
    kept = target != ignore_index
    index = torch.where(kept, target, 0).long()
    weights = torch.ones(inputs.shape[1], dtype=inputs.dtype) if weight is None else weight
    factors = weights[index] * kept
    loss = -torch.gather(inputs, 1, index.unsqueeze(1)).squeeze(1) * factors
    if label_smoothing:
        shape = (1, -1, *[1] * (inputs.dim() - 2))
        smooth = -(inputs * weights.reshape(shape)).sum(1) * kept
        loss = (1 - label_smoothing) * loss + label_smoothing / inputs.shape[1] * smooth
    if reduction == "mean":
        return loss.sum() / factors.sum()
    return loss.sum() if reduction == "sum" else loss


@twin("Functional.kl_div")
def kl_div(logits: Any, labels: Any, reduction: str = "mean") -> Any:
    return functional.kl_div(logits, labels, reduction=reduction)


@twin("MintFunctional.kl_div")
def mint_kl_div(input: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    return functional.kl_div(input, target, reduction=reduction, log_target=log_target)


@twin("Functional.mse_loss", "Functional.mse_loss_ext", "MintFunctional.mse_loss")
def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    return functional.mse_loss(*torch.broadcast_tensors(input, target), reduction=reduction)


@twin("Functional.l1_loss", "MintFunctional.l1_loss")
def l1_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    return functional.l1_loss(*torch.broadcast_tensors(input, target), reduction=reduction)


@twin("Functional.smooth_l1_loss")
def smooth_l1_loss(input: Any, target: Any, beta: float = 1.0, reduction: str = "none") -> Any:
    return functional.smooth_l1_loss(input, target, reduction=reduction, beta=beta)


@twin("MintFunctional.smooth_l1_loss")
def mint_smooth_l1_loss(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Any:
    return functional.smooth_l1_loss(input, target, reduction=reduction, beta=beta)


@twin("Functional.huber_loss")
def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0) -> Any:
    return functional.huber_loss(input, target, reduction, delta)


@twin("Functional.soft_margin_loss", "MintFunctional.soft_margin_loss")
def soft_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    return functional.soft_margin_loss(input, target, reduction=reduction)


@twin("Functional.hinge_embedding_loss")
def hinge_embedding_loss(inputs: Any, targets: Any, margin: float = 1.0, reduction: str = "mean") -> Any:
    return functional.hinge_embedding_loss(inputs, targets, margin, reduction=reduction)


@twin("Functional.margin_ranking_loss")
def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean") -> Any:
    return functional.margin_ranking_loss(input1, input2, target, margin, reduction=reduction)


@twin("Functional.cosine_embedding_loss", "MintFunctional.cosine_embedding_loss")
def cosine_embedding_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean") -> Any:
    return functional.cosine_embedding_loss(input1, input2, target, margin, reduction=reduction)


@twin("Functional.multi_margin_loss")
def multi_margin_loss(
    input: Any, target: Any, p: int = 1, margin: float = 1, weight: Any = None, reduction: str = "mean"
) -> Any:
    return functional.multi_margin_loss(input, target, p, margin, weight, reduction=reduction)


@twin("Functional.multilabel_margin_loss")
def multilabel_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    return functional.multilabel_margin_loss(input, target.long(), reduction=reduction)


@twin("Functional.multilabel_soft_margin_loss")
def multilabel_soft_margin_loss(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Any:
    return functional.multilabel_soft_margin_loss(input, target, weight, reduction=reduction)


@twin("Functional.triplet_margin_loss")
def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: int = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    return functional.triplet_margin_loss(anchor, positive, negative, float(margin), p, eps, swap, reduction=reduction)


@twin("Functional.ctc_loss")
def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:
    """The loss, and the logarithms of the forward probabilities."""
    loss, log_alpha = torch._ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
    late = torch.arange(log_alpha.shape[1]).unsqueeze(1) >= input_lengths.reshape(-1, 1, 1)
    beyond = late | (torch.arange(log_alpha.shape[-1]) > 2 * target_lengths.reshape(-1, 1, 1))
    log_alpha = torch.where(beyond, -torch.inf, log_alpha)
    if reduction == "mean":
        loss = (loss / target_lengths.clamp(min=1)).mean()
    elif reduction == "sum":
        loss = loss.sum()
    return loss, log_alpha
