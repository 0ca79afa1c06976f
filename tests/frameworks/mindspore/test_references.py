"""References of MindSpore's operators: signatures are its own, and results those of the kernels that a CPU has."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import mindspore
import numpy as np
import pytest
from mindspore import Tensor, mint, ops
from mindspore.ops.auto_generate import gen_ops_prim
from reference_calls import gradients, normal, outputs, reference

from msprobe_ms.accuracy.references.table import fused_references

SPACES = {"Functional": ops, "Mint": mint, "MintFunctional": mint.nn.functional}
FOUND = sorted(fused_references("mindspore"))


@pytest.mark.parametrize(("prefix", "name"), FOUND)
def test_signatures_are_mindspore_s(prefix: str, name: str) -> None:
    if prefix == "Primitive":
        operator = getattr(gen_ops_prim, name, None) or getattr(ops, name)
        own = [*inspect.signature(operator.__call__).parameters.values()][1:]
    else:
        own = [*inspect.signature(getattr(SPACES[prefix], name)).parameters.values()]
    if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in own):
        return  # it tells nothing
    ours = [*fused_references("mindspore")[prefix, name].signature.parameters.values()]
    if prefix == "Primitive":  # keywords are what it is made with
        made_with = [each.name for each in ours if each.kind is inspect.Parameter.KEYWORD_ONLY]
        assert set(made_with) <= set(inspect.signature(operator.__init__).parameters)
        ours = [each for each in ours if each.name not in made_with]
    assert [(each.name, each.default, each.kind) for each in ours] == [
        (each.name, each.default, each.kind) for each in own
    ]


X, WEIGHT, BIAS = normal(3, 8), normal(5, 8, seed=1), normal(5, seed=2)
CLASSES = np.array([1, 0, 7], np.int32)
CALLS: list[tuple[str, str, tuple[Any, ...], dict[str, Any]]] = [
    ("Functional", "fast_gelu", (X,), {}), ("Functional", "gelu", (X,), {}),
    ("Functional", "gelu", (X,), {"approximate": "tanh"}),
    ("Functional", "silu", (X,), {}), ("MintFunctional", "silu", (X,), {}), ("Functional", "mish", (X,), {}),
    ("Functional", "dense", (X, WEIGHT, BIAS), {}), ("MintFunctional", "linear", (X, WEIGHT), {}),
    ("MintFunctional", "group_norm", (normal(2, 4, 3), 2, normal(4), normal(4, seed=1)), {"eps": 1e-3}),
    ("Functional", "cross_entropy", (X, CLASSES), {}),
    ("Functional", "cross_entropy", (X, CLASSES), {"reduction": "sum"}),
    ("Functional", "cross_entropy", (X, CLASSES, np.linspace(0.5, 2, 8)), {"label_smoothing": 0.25}),
    ("Functional", "cross_entropy", (X, np.exp(normal(3, 8, seed=4))), {"label_smoothing": 0.25}),
    ("Functional", "cross_entropy", (X, CLASSES), {"ignore_index": 7, "reduction": "none"}),
    ("Functional", "sort", (X, 0, True), {}),
]  # fmt: skip


@pytest.mark.parametrize(("prefix", "name", "positional", "keywords"), CALLS)
def test_results_are_those_of_the_kernels(
    prefix: str, name: str, positional: tuple[Any, ...], keywords: dict[str, Any]
) -> None:
    found, function = reference(name, prefix, "mindspore"), getattr(SPACES[prefix], name)
    result = _called(function, positional, keywords)
    results = result if isinstance(result, tuple) else (result,)
    first = results[0]
    for value, result in zip(outputs(found, *positional, **keywords), results, strict=True):
        np.testing.assert_allclose(value, result.asnumpy(), rtol=2e-5, atol=2e-6)
    g = normal(*first.shape, seed=5)

    def loss(x: Tensor) -> Tensor:
        result = _called(function, (x, *positional[1:]), keywords)
        return ((result[0] if isinstance(result, tuple) else result) * Tensor(g, mindspore.float32)).sum()

    gradient = mindspore.grad(loss)(Tensor(positional[0], mindspore.float32))
    np.testing.assert_allclose(
        gradients(found, [g], *positional, **keywords)[0], gradient.asnumpy(), rtol=1e-4, atol=1e-5
    )


def _called(function: Callable[..., Any], positional: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    narrow = [
        Tensor(each, mindspore.float32 if each.dtype.kind == "f" else mindspore.int32)
        if isinstance(each, np.ndarray)
        else each
        for each in positional
    ]
    return function(*narrow, **keywords)


def test_a_step_with_decoupled_decay_is_the_primitive_s() -> None:
    var, m, v, grad = normal(4), normal(4, seed=1), normal(4, seed=2) ** 2, normal(4, seed=3)
    settings = (0.1, 0.9, 0.99, 1e-6, 0.2)
    expected = outputs(reference("AdamWeightDecay", "Primitive", "mindspore"), var, m, v, *settings, grad)
    state = [mindspore.Parameter(Tensor(each, mindspore.float32), name=str(n)) for n, each in enumerate((var, m, v))]
    ops.AdamWeightDecay()(*state, *settings, Tensor(grad, mindspore.float32))
    for value, result in zip(expected, state, strict=True):
        np.testing.assert_allclose(value, result.asnumpy(), rtol=1e-5, atol=1e-6)
