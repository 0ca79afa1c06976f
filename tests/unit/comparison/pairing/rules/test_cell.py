"""Cell rules: exact first, then whole components."""

from __future__ import annotations

import pytest

from msprobe_ms.comparison.pairing.rules.cell import CellRules


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
