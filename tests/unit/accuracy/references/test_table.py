"""Names of dumps find their reference, and each reads arguments that its formula has."""

from __future__ import annotations

import inspect

import pytest

from msprobe_ms.accuracy.references import fused_reference
from msprobe_ms.accuracy.references.table import fused_references


@pytest.mark.parametrize(("apis", "prefix", "api", "name"), [
    ("mindspore", "Functional", "flash_attention_score", "flash_attention_score"),
    ("mindspore", "Mint", "sort", "sort"), ("mindspore", "MintFunctional", "gelu", "gelu"),
    ("mindspore", "Primitive", "layer.act.GeLU", "GeLU"), ("mindspore", "Primitive", "GeLU", "GeLU"),
    ("pytorch", "NPU", "npu_rms_norm", "npu_rms_norm"), ("pytorch", "Torch", "npu_fusion_attention",
     "npu_fusion_attention"), ("pytorch", "Functional", "scaled_dot_product_attention", "scaled_dot_product_attention"),
])  # fmt: skip
def test_names_of_dumps(apis: str, prefix: str, api: str, name: str) -> None:
    found = fused_reference(apis, prefix, api)
    assert found is not None and found.name == name


@pytest.mark.parametrize(("apis", "prefix", "api"), [
    ("mindspore", "Functional", "npu_rms_norm"), ("pytorch", "Tensor", "gelu"), ("pytorch", "NPU", "relu"),
    ("mindspore", "Functional", "act.GeLU"), ("jax", "Functional", "gelu"),
])  # fmt: skip
def test_other_names_have_none(apis: str, prefix: str, api: str) -> None:
    assert fused_reference(apis, prefix, api) is None


@pytest.mark.parametrize("apis", ["mindspore", "pytorch"])
def test_every_argument_that_is_read_is_one_of_the_formula(apis: str) -> None:
    for found in fused_references(apis).values():
        formula = inspect.signature(found.formula)
        if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in formula.parameters.values()):
            continue
        read = [*found.names.values(), *found.constants]
        assert len(set(read)) == len(read), found.name
        formula.bind(**dict.fromkeys(read))
