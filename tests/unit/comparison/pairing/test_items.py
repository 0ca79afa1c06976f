"""Items of two paired entries."""

from __future__ import annotations

import pytest
from built_dumps import Items, entry

from msprobe_ms.comparison.pairing.items import pair_items


def beside(target: Items, golden: Items, name: str = "Cell.a.B.forward.0") -> list[tuple[str | None, str | None]]:
    ours, theirs = entry(name, target), entry(name.replace("Cell", "Module"), golden)
    return [(a.suffix if a else None, b.suffix if b else None) for a, b in pair_items(ours.items, theirs.items)]


def test_equal_suffixes_pair_and_a_surplus_stands_alone():
    assert beside(
        {"input.0": (1,), "input.1": (2,), "output.0": (1,)}, {"output.0": (1,), "input.0": (9,), "output.1": (3,)}
    ) == [
        ("input.0", "input.0"),
        ("input.1", None),
        ("output.0", "output.0"),
        (None, "output.1"),
    ]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("gamma", "weight"),
        ("beta", "bias"),
        ("embedding_table", "weight"),
        ("moving_mean", "running_mean"),
        ("moving_variance", "running_var"),
        ("norm.gamma", "norm.weight"),
    ],
)
def test_parameters_pair_by_meaning(ours, theirs):
    assert beside({f"parameters.{ours}": (3,)}, {f"parameters.{theirs}": (3,)}) == [
        (f"parameters.{ours}", f"parameters.{theirs}")
    ]
    assert beside({f"parameters.{theirs}": (3,)}, {f"parameters.{ours}": (3,)}) == [
        (f"parameters.{theirs}", f"parameters.{ours}")
    ]
    name = "Cell.a.B.parameters_grad.0"
    assert beside({ours: (3,)}, {theirs: (3,)}, name) == [(ours, theirs)]


def test_an_equal_name_comes_before_an_equal_meaning():
    both: Items = {"parameters.gamma": (3,), "parameters.weight": (3,)}
    assert beside(both, both) == [(name, name) for name in both]


def test_an_input_named_gamma_is_no_parameter():
    assert beside({"input.gamma=": (3,)}, {"input.weight=": (3,)}) == [("input.gamma", None), (None, "input.weight")]


def test_keywords_pair_by_name():
    assert beside({"input.b=": (1,), "input.a=": (1,)}, {"input.a=": (1,), "input.b=": (1,)}) == [
        ("input.b", "input.b"),
        ("input.a", "input.a"),
    ]


def test_positional_tensors_pair_with_keyword_tensors_of_equal_shapes():
    ours: Items = {"input.0": (1,), "input.1": (2, 2), "input.2": (3,)}
    theirs: Items = {"input.0": (1,), "input.mask=": (2, 2), "input.bias=": (3,)}
    assert beside(ours, theirs)[1:] == [("input.1", "input.mask"), ("input.2", "input.bias")]
    assert beside(theirs, ours)[1:] == [("input.mask", "input.1"), ("input.bias", "input.2")]


def test_positional_and_keyword_tensors_of_other_shapes_stay_alone():
    ours: Items = {"input.0": (1,), "input.1": (2, 2)}
    assert beside(ours, {"input.0": (1,), "input.mask=": (2, 3)})[1:] == [("input.1", None), (None, "input.mask")]
    assert len(beside(ours, {"input.0": (1,), "input.a=": (2, 2), "input.b=": (2, 2)})) == 4


def test_gradients_pair_past_null_places():
    backward = "Cell.a.B.backward.0"
    ours: Items = {"output.0": None, "output.1": (6, 5), "output.2": (6,)}
    theirs: Items = {"output.0": (6, 5), "output.1": (6,)}
    assert beside(ours, theirs, backward) == [("output.0", None), ("output.1", "output.0"), ("output.2", "output.1")]


def test_gradients_of_other_shapes_are_not_of_the_same_thing():
    backward = "Cell.a.B.backward.0"
    assert beside({"output.0": (2, 2, 8)}, {"output.0": (4, 8)}, backward) == [("output.0", None), (None, "output.0")]


def test_forward_outputs_of_other_shapes_still_pair():
    assert beside({"output.0": (2, 2, 8)}, {"output.0": (4, 8)}) == [("output.0", "output.0")]


def test_nothing_beside_nothing():
    assert beside({}, {}) == []
