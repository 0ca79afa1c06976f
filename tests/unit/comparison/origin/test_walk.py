"""What is told at each node: small histories of a step that hold something another node explains, or takes back."""

from __future__ import annotations

import math

from compare_nodes import FAULT, REST, node, only, origins

NET = "Cell.Net.forward.0"


def test_a_parameter_of_the_net_itself_comes_before_what_it_makes_wrong_inside() -> None:
    first = node("Cell.a.Dense.forward.0", NET, (4.0, 2.0), input_0=REST, output_0=REST)
    second = node("Cell.b.Dense.forward.0", NET, (5.0, 2.0), input_0=FAULT, output_0=FAULT)
    third = node("Cell.c.Dense.forward.0", NET, (6.0, 2.0), input_0=REST, parameters_weight=FAULT, output_0=FAULT)
    net = node(NET, None, input_0=0.0, output_0=FAULT, parameters_position=FAULT)
    assert origins(first, second, third, net) == [
        f"{NET}.parameters.position",
        "Cell.c.Dense.forward.0.parameters.weight",
    ]


def test_rounding_inside_explains_what_the_net_itself_gives_out() -> None:
    """It takes in data, which are the same on both sides to the bit."""
    inside = node("Cell.a.Dense.forward.0", NET, input_0=0.0, output_0=0.9)
    assert origins(inside, node(NET, None, input_0=0.0, output_0=3.0)) == []
    assert origins(inside, node(NET, None, input_0=0.0, output_0=FAULT)) == [f"{NET}.output.0"]


def test_an_input_of_another_form_is_told_only_where_nothing_else_is() -> None:
    net = "Cell.net.Net.forward.0"
    masked = node("Cell.net.a.Attention.forward.0", net, (4.0, 2.0), input_mask=math.inf)
    wrong = node("Cell.net.b.Dense.forward.0", net, (5.0, 2.0), input_0=REST, output_0=FAULT)
    assert origins(masked) == ["Cell.net.a.Attention.forward.0.input.mask"]
    assert origins(masked, wrong) == ["Cell.net.b.Dense.forward.0.output.0"]


def test_an_input_of_another_form_explains_no_result_in_the_same_form() -> None:
    found = only(node("Cell.a.Attention.forward.0", None, input_0=REST, input_mask=math.inf, output_0=FAULT))
    assert found.target == "Cell.a.Attention.forward.0.output.0"
    assert "though its inputs but input.mask agree" in found.reason


def test_a_result_of_another_form_is_told_unless_something_else_stands_on_its_own() -> None:
    """A padding that is cut off again, beside one that is the error."""
    padded = node("Cell.net.a.Pad.forward.0", None, (4.0, 2.0), input_0=REST, output_0=math.inf)
    taken = node("Cell.net.b.Dense.forward.0", None, (5.0, 2.0), input_0=FAULT, output_0=FAULT)
    wrong = node("Cell.net.c.Dense.forward.0", None, (6.0, 2.0), input_0=REST, output_0=FAULT)
    assert origins(padded) == ["Cell.net.a.Pad.forward.0.output.0"]
    assert origins(padded, taken) == ["Cell.net.a.Pad.forward.0.output.0", "Cell.net.b.Dense.forward.0.input.0"]
    assert origins(padded, wrong) == ["Cell.net.c.Dense.forward.0.output.0"]
