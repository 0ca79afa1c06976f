"""References of operators against PyTorch in float64: its own operator where it has it, else one composed of plain
operations, both with the gradients of autograd.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from reference_calls import gradients, normal, outputs, reference

from msprobe_ms.accuracy.references import FusedReference, NotJudged

MINDSPORE_FLASH = reference("flash_attention_score", "Functional", "mindspore")
SPEED = reference("speed_fusion_attention", "Functional", "mindspore")


def assert_same(found: FusedReference, composed: Callable[..., Any], *positional: Any, **keywords: Any) -> None:
    """Outputs and gradients of a reference are those of ``composed``, a function of torch with the same arguments."""
    leaves: list[torch.Tensor] = []

    def tensor(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(map(tensor, value))
        if not isinstance(value, np.ndarray):
            return value
        made = torch.tensor(value, requires_grad=value.dtype.kind == "f")
        leaves.extend([made] * made.requires_grad)
        return made

    given = [tensor(each) for each in positional]  # before the keywords: so are the gradients
    result = composed(*given, **{name: tensor(each) for name, each in keywords.items()})
    results = result if isinstance(result, tuple) else (result,)
    values = outputs(found, *positional, **keywords)
    for value, expected in zip(values, results, strict=False):
        if not isinstance(value, NotJudged):
            np.testing.assert_allclose(value, expected.detach().numpy(), rtol=1e-10, atol=1e-12)
    if not results[0].requires_grad:
        return
    g = normal(*results[0].shape, seed=7)
    results[0].backward(torch.tensor(g))
    computed = gradients(found, [g], *positional, **keywords)
    assert len(computed) == len(leaves)
    for gradient, leaf in zip(computed, leaves, strict=True):
        if isinstance(gradient, NotJudged):
            continue
        expected = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
        gradient = np.zeros(leaf.shape) if gradient is None else gradient
        np.testing.assert_allclose(gradient, expected.numpy(), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("name", "composed", "keywords"), [
    ("npu_gelu", F.gelu, {}), ("npu_gelu", F.gelu, {"approximate": "tanh"}), ("npu_silu", F.silu, {}),
    ("npu_mish", F.mish, {}), ("npu_fast_gelu", lambda x: x * torch.sigmoid(1.702 * x), {}),
    ("npu_swiglu", lambda x: F.silu(x[..., :3]) * x[..., 3:], {}),
    ("npu_swiglu", lambda x, dim: F.silu(x[:2]) * x[2:], {"dim": 0}),
])  # fmt: skip
def test_activations(name: str, composed: Callable[..., Any], keywords: dict[str, Any]) -> None:
    for scale in (0.01, 1, 20):
        assert_same(reference(name), composed, scale * normal(4, 6), **keywords)


@pytest.mark.parametrize(("shape", "normalized"), [((3, 8), [8]), ((2, 3, 4), [3, 4]), ((2, 1, 3, 8), [8])])
def test_norms_over_trailing_axes(shape: tuple[int, ...], normalized: list[int]) -> None:
    x, weight, bias = normal(*shape), normal(*normalized, seed=1), normal(*normalized, seed=2)
    for epsilon in (1e-6, 1e-2):
        assert_same(
            reference("npu_rms_norm"), lambda x, gamma, epsilon: F.rms_norm(x, normalized, gamma, epsilon),
            x, weight, epsilon,
        )  # fmt: skip
        assert_same(reference("npu_layer_norm_eval"), F.layer_norm, x, normalized, weight, bias, epsilon)
        assert_same(
            reference("npu_add_rms_norm"),
            lambda x1, x2, gamma, epsilon: F.rms_norm(x1 + x2, normalized, gamma, epsilon),
            x, 2 * x**2, weight, epsilon,
        )  # fmt: skip
    for name in ("layer_norm", "rms_norm"):
        given = (x, normalized, weight, bias) if name == "layer_norm" else (x, normalized, weight)
        assert_same(reference(name, "Functional"), getattr(F, name), *given, eps=1e-5)
        assert_same(reference(name, "Functional"), getattr(F, name), x, normalized, eps=1e-5)


@pytest.mark.parametrize(("shape", "groups"), [((2, 6), 3), ((2, 6, 5), 2), ((2, 4, 3, 2), 4), ((1, 4, 2, 2, 2), 2)])
def test_group_norm(shape: tuple[int, ...], groups: int) -> None:
    x, weight, bias = normal(*shape), normal(shape[1], seed=1), normal(shape[1], seed=2)
    own = reference("group_norm", "Functional")
    assert_same(own, F.group_norm, x, groups, weight, bias, 1e-3)
    assert_same(own, F.group_norm, x, groups)
    assert_same(
        reference("npu_group_norm_silu"), lambda x, w, b, n, eps: F.silu(F.group_norm(x, n, w, b, eps)),
        x, weight, bias, groups, 1e-3,
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["half", "interleave"])
@pytest.mark.parametrize("of_cos", [(1, 1, 4, 8), (2, 1, 4, 8), (2, 3, 4, 8)])
def test_rotary(mode: str, of_cos: tuple[int, ...]) -> None:
    def composed(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, _: str) -> torch.Tensor:
        if mode == "half":
            x1, x2 = x.chunk(2, -1)
            return cos * x + sin * torch.cat([-x2, x1], -1)
        return cos * x + sin * torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)

    assert_same(
        reference("npu_rotary_mul"),
        composed,
        normal(2, 3, 4, 8),
        normal(*of_cos, seed=1),
        normal(*of_cos, seed=2),
        mode,
    )


def test_linear_softmax_and_layout() -> None:
    assert_same(reference("npu_linear"), F.linear, normal(2, 3, 4), normal(5, 4), normal(5))
    mask = normal(2, 1, 4, 5, seed=3) > 0.5
    assert_same(
        reference("npu_scaled_masked_softmax"),
        lambda x, mask, scale: torch.softmax((x * scale).masked_fill(mask, -10000.0), -1),
        normal(2, 3, 4, 5), mask, 0.7,
    )  # fmt: skip
    assert_same(
        reference("npu_confusion_transpose"), lambda x, perm, shape, _: x.permute(perm).reshape(shape),
        normal(2, 3, 4), (2, 0, 1), (4, 6), True,
    )  # fmt: skip
    assert_same(
        reference("sort", "Mint", "mindspore"), lambda x, **given: tuple(torch.sort(x, **given)),
        normal(5, 4).round(decimals=0), dim=0, descending=True, stable=True,
    )  # fmt: skip


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("shape", [(5,), (4, 5), (2, 5, 3, 2)])
def test_cross_entropy(reduction: str, smoothing: float, shape: tuple[int, ...]) -> None:
    x, classes = normal(*shape), 5
    target = np.random.default_rng(2).integers(0, classes, shape[:1] + shape[2:] if len(shape) > 1 else ())
    if target.ndim:
        target.reshape(-1)[1] = 3
    given = {"reduction": reduction, "label_smoothing": smoothing}
    own = reference("cross_entropy", "Functional")
    assert_same(own, F.cross_entropy, x, np.asarray(target), ignore_index=3 if target.ndim else -100, **given)
    shares = np.exp(normal(*shape, seed=3))
    weight = np.linspace(0.5, 2, classes)
    assert_same(own, F.cross_entropy, x, shares, weight, **given)

    def fixed(x: torch.Tensor, target: torch.Tensor, weight: torch.Tensor, **given: Any) -> torch.Tensor:
        return F.cross_entropy(x, target, weight.detach(), **given)

    assert_same(own, fixed, x, np.asarray(target), weight, **given)


def test_experts() -> None:
    def gated(x: torch.Tensor, finished: None, k: int) -> Any:
        return tuple(torch.softmax(x, -1).topk(k))

    def unpermuted(tokens: torch.Tensor, places: torch.Tensor, probs: torch.Tensor) -> torch.Tensor:
        return (tokens[places].reshape(3, 2, 4) * probs[..., None]).sum(1)

    assert_same(reference("npu_moe_gating_top_k_softmax"), gated, normal(4, 6), None, 3)
    places = np.array([5, 0, 3, 1, 2, 4])
    assert_same(reference("npu_moe_token_unpermute"), unpermuted, normal(6, 4), places, normal(3, 2))


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("maximize", [False, True])
def test_adam_w_over_five_steps(amsgrad: bool, maximize: bool) -> None:
    parameter = torch.nn.Parameter(torch.tensor(normal(4)))
    optimizer = torch.optim.AdamW(
        [parameter], lr=0.1, betas=(0.9, 0.99), weight_decay=0.2, amsgrad=amsgrad, maximize=maximize
    )
    state = (normal(4), np.zeros(4), np.zeros(4))
    largest = np.zeros(4)
    for step in range(5):
        grad = normal(4, seed=step) / (step + 1)
        parameter.grad = torch.tensor(grad)
        optimizer.step()
        state = tuple(
            outputs(
                reference("npu_apply_adam_w"), 0.9**step, 0.99**step, 0.1, 0.2, 0.9, 0.99, 1e-8, grad, largest, amsgrad,
                maximize, out=state,
            )
        )  # fmt: skip
        largest = np.maximum(largest, state[2])
        np.testing.assert_allclose(state[0], parameter.detach().numpy(), rtol=1e-12)
        np.testing.assert_allclose(state[1], optimizer.state[parameter]["exp_avg"].numpy(), rtol=1e-12)


def test_adam_over_five_steps() -> None:
    # With this epsilon the two places at which it may be added make no difference.
    parameter = torch.nn.Parameter(torch.tensor(normal(4)))
    optimizer = torch.optim.Adam([parameter], lr=0.1, betas=(0.9, 0.99), eps=0.0)
    state = (normal(4), np.zeros(4), np.zeros(4))
    for step in range(1, 6):
        grad = normal(4, seed=step)
        parameter.grad = torch.tensor(grad)
        optimizer.step()
        powers = 0.9**step, 0.99**step
        state = tuple(outputs(reference("npu_apply_adam"), *powers, 0.1, 0.9, 0.99, 0.0, grad, False, False, out=state))
        np.testing.assert_allclose(state[0], parameter.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", [(2, 4, 3, 5), (2, 4, 6, 6), (2, 4, 6, 3)])
def test_scaled_dot_product_attention(causal: bool, shape: tuple[int, ...]) -> None:
    b, n, s1, s2 = shape
    own = reference("scaled_dot_product_attention", "Functional")
    q, k, v = normal(b, n, s1, 4), normal(b, n, s2, 4, seed=1), normal(b, n, s2, 5, seed=2)
    assert_same(own, F.scaled_dot_product_attention, q, k, v, is_causal=causal)
    if not causal:
        added, seen = normal(b, 1, s1, s2), normal(s1, s2, seed=3) > 0
        seen[0] = False  # rows without a key
        assert_same(own, F.scaled_dot_product_attention, q, k, v, added, scale=0.3)
        assert_same(own, F.scaled_dot_product_attention, q, k, v, seen)
    grouped = k[:, :2].copy(), v[:, :2].copy()
    assert_same(own, F.scaled_dot_product_attention, q, *grouped, is_causal=causal, enable_gqa=True)
    alone = (tensor[0, 0].copy() for tensor in (q, k, v))
    assert_same(own, F.scaled_dot_product_attention, *alone, is_causal=causal)


@pytest.mark.parametrize("layout", ["BNSD", "BSND", "BSH", "SBH"])
@pytest.mark.parametrize("sparse_mode", [None, 0, 1, 2, 3, 4])
@pytest.mark.parametrize(("s1", "s2"), [(5, 5), (4, 6), (6, 4)])
def test_fused_attention(layout: str, sparse_mode: int | None, s1: int, s2: int) -> None:
    """By PyTorch's attention on (B, N, S, D), the mask written out: rows without a key are 0 in both."""
    places = {"BNSD": (0, 1, 2, 3), "BSND": (0, 2, 1, 3), "BSH": (0, 2, 1, 3), "SBH": (2, 0, 1, 3)}[layout]
    b, n1, n2, d = 2, 4, 2, 4
    i, j = np.arange(s1)[:, None], np.arange(s2)
    corner = s2 - s1
    whole = normal(b, 1, s1, s2, seed=5) > 0.7
    dropped = {
        None: np.zeros((s1, s2), bool), 0: whole | (j > i + 2) | (j < i - 3), 1: whole, 2: j > i, 3: j > i + corner,
        4: (j > i + corner + 2) | (j < i + corner - 3),
    }[sparse_mode]  # fmt: skip
    codes = normal(1, n1, s1, s2, seed=6)

    def laid_out(tensor: np.ndarray) -> np.ndarray:
        moved = tensor.transpose(places)
        return np.ascontiguousarray(moved if layout[-1] == "D" else moved.reshape(*moved.shape[:2], -1))

    def four(tensor: torch.Tensor, heads: int) -> torch.Tensor:
        apart = tensor if tensor.ndim == 4 else tensor.reshape(*tensor.shape[:2], heads, -1)
        return apart.permute(tuple(np.argsort(places)))

    def back(tensor: torch.Tensor) -> torch.Tensor:
        moved = tensor.permute(places)
        return moved if layout[-1] == "D" else moved.flatten(-2)

    def composed(scaled: bool) -> Callable[..., torch.Tensor]:
        def attention(q: Any, k: Any, v: Any, *_: Any, **given: Any) -> torch.Tensor:
            pse = given.get("pse", given.get("real_shift"))
            added = (0.6 * pse if scaled else pse).masked_fill(torch.tensor(dropped), float("-inf"))
            return back(
                F.scaled_dot_product_attention(four(q, n1), four(k, n2), four(v, n2), added, scale=0.6, enable_gqa=True)
            )

        return attention

    q, k, v = (laid_out(normal(b, n, s, d, seed=n)) for n, s in ((n1, s1), (n2, s2), (n2, s2)))
    compressed = np.triu(np.ones((2048, 2048), np.uint8), 1)
    mask = None if sparse_mode is None else compressed if sparse_mode > 1 else whole
    common = {"sparse_mode": sparse_mode or 0}
    bounds = (3, 2)
    assert_same(
        reference("npu_fusion_attention"), composed(True), q, k, v, n1, layout, pse=codes, atten_mask=mask, scale=0.6,
        pre_tockens=bounds[0], next_tockens=bounds[1], **common,
    )  # fmt: skip
    for found, name, scale in ((MINDSPORE_FLASH, "real_shift", "scalar_value"), (SPEED, "pse", "scale")):
        kind = {} if found is MINDSPORE_FLASH else {"pse_type": 0}
        masked = {"attn_mask" if found is MINDSPORE_FLASH else "atten_mask": mask, scale: 0.6, name: codes}
        assert_same(
            found, composed(False), q, k, v, n1, input_layout=layout, pre_tokens=bounds[0], next_tokens=bounds[1],
            **masked, **kind, **common,
        )  # fmt: skip


def test_a_numerical_check_of_torch_agrees_too() -> None:
    """torch.autograd.gradcheck with the reference as forward and backward of an operator."""
    found = reference("npu_fusion_attention")
    given = {"head_num": 2, "input_layout": "BNSD", "scale": 0.5}

    class Fused(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *tensors: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(*tensors)
            return torch.tensor(outputs(found, *(each.numpy() for each in tensors), **given)[0])

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> Any:
            arrays = [each.numpy() for each in ctx.saved_tensors]
            return tuple(map(torch.tensor, gradients(found, [g.numpy()], *arrays, **given)))

    tensors = [
        torch.tensor(normal(1, heads, size, 3, seed=heads), requires_grad=True)
        for heads, size in ((2, 2), (1, 3), (1, 3))
    ]
    assert torch.autograd.gradcheck(Fused.apply, tensors)
