"""Layer rules: the walk from the top, class by class. Cell rules: exact first, then whole components."""

from __future__ import annotations

import pytest

from msprobe_ms.comparison.pairing.rules.modules import CellRules, LayerRules, ModuleTree

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


@pytest.mark.parametrize(
    ("rules", "cell", "golden"),
    [
        ({"fc2.Dense": "fc2.Linear"}, ("fc2", "Dense"), ("fc2", "Linear")),
        ({"fc2.Dense": "a.b.Linear"}, ("net.fc2", "Dense"), ("net.a.b", "Linear")),
        ({"fc2.Dense": "x.Y", "net.fc2.Dense": "exact.Z"}, ("net.fc2", "Dense"), ("exact", "Z")),
        ({"Dense": "Linear", "fc": "linear"}, ("net.fc", "Dense"), ("net.linear", "Linear")),
        ({"a": "b", "b": "a"}, ("a.b", "Dense"), ("b.a", "Dense")),
        ({"layer": "block"}, ("layer.layer", "Dense"), ("block.layer", "Dense")),
        ({"net": "n", "net.fc": "m.linear"}, ("net.fc", "Dense"), ("m.linear", "Dense")),
    ],
)
def test_a_rule_replaces_whole_components_once(rules, cell, golden):
    assert CellRules(rules).golden(*cell)[:2] == golden


def test_part_of_a_component_is_no_match():
    assert CellRules({"fc": "linear"}).golden("fc1", "Dense") == ("fc1", "Dense", ())


def test_the_rules_that_acted_are_named():
    assert CellRules({"fc": "linear", "Dense": "Linear", "x": "y"}).golden("fc", "Dense")[2] == ("fc", "Dense")
