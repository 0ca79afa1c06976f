"""Layer rules: the walk from the top, class by class."""

from __future__ import annotations

import pytest

from msprobe_ms.comparison.pairing.rules.layer import LayerRules, ModuleTree

NET = [
    ("", "Net"),
    ("attn", "ParallelAttention"),
    ("attn.qkv_proj", "ColumnParallelLinear"),
    ("layers.0", "Block"),
    ("layers.0.ffn", "FeedForward"),
    ("layers.5", "Block"),
    ("layers.5.ffn", "FeedForward"),
    ("layers.5.ffn.norm", "LayerNorm"),
]


def walk(rules, path, modules=NET, golden=()):
    return LayerRules(rules, ModuleTree.of(modules), ModuleTree.of(golden)).golden_path(path)[0]


@pytest.mark.parametrize(
    ("rules", "path", "golden"),
    [
        ({"ParallelAttention": {"qkv_proj": "query_key_value"}}, "attn.qkv_proj", "attn.query_key_value"),
        ({"TopLayer": {"attn": "module.attn"}}, "attn.qkv_proj", "module.attn.qkv_proj"),
        ({"Net": {"attn": "attention"}}, "attn.qkv_proj", "attention.qkv_proj"),
        ({"layers": {"5": "0"}}, "layers.5.ffn", "layers.0.ffn"),
        ({"layers": {"5": "0"}}, "layers.0.ffn", "layers.0.ffn"),
        ({"TopLayer": {"layers": "h"}, "layers": {"5": "0"}, "Block": {"ffn": "mlp"}}, "layers.5.ffn", "h.0.mlp"),
        ({"TopLayer": {"layers": "h", "layers.0": "first"}}, "layers.0.ffn", "first.ffn"),
        ({"TopLayer": {"layers.0": "first", "layers": "h"}}, "layers.5.ffn", "h.5.ffn"),
        ({"TopLayer": {"layers.5.ffn": "x"}, "FeedForward": {"norm": "ln"}}, "layers.5.ffn.norm", "x.ln"),
        ({"FeedForward": {"ffn": "never"}, "Block": {"norm": "never"}}, "layers.5.ffn.norm", "layers.5.ffn.norm"),
        ({}, "", ""),
    ],
)
def test_the_class_of_the_parent_renames_the_child(rules, path, golden):
    assert walk(rules, path) == golden


def test_rules_see_the_target_classes_even_below_a_renamed_parent():
    rules = {"Block": {"ffn": "mlp"}, "FeedForward": {"norm": "ln"}}
    assert walk(rules, "layers.5.ffn.norm") == "layers.5.mlp.ln"


STAGE = [("model", "ParallelTransformer"), *((f"model.layers.{i}", "Block") for i in range(4, 8))]


def golden_stage(numbers):
    return [("model", "ParallelTransformer"), *((f"model.layers.{i}", "Block") for i in numbers)]


def test_a_pipeline_stage_is_renumbered_when_both_stages_hold_equally_many():
    assert walk({"X": {}}, "model.layers.6", STAGE, golden_stage(range(4))) == "model.layers.2"
    assert walk({"X": {}}, "model.layers.6", STAGE, golden_stage(range(8, 12))) == "model.layers.10"


def test_global_numbers_stay_beside_a_whole_model():
    assert walk({"X": {}}, "model.layers.6", STAGE, golden_stage(range(8))) == "model.layers.6"


def test_renumbering_follows_a_renamed_container():
    golden = [("model", "ParallelTransformer"), *((f"model.h.{i}", "Block") for i in range(4))]
    assert walk({"ParallelTransformer": {"layers": "h"}}, "model.layers.6", STAGE, golden) == "model.h.2"
