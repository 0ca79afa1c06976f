"""What is computed from values that differ."""

from __future__ import annotations

from compare_nodes import FAULT, REST, node, only, origins


def test_after_an_origin_inputs_that_seem_to_agree_prove_less() -> None:
    later = node("Cell.b.Dense.forward.0", None, (7.0, 2.0), input_0=0.7, output_0=6)
    assert origins(node("Cell.a.Norm.forward.0", input_0=REST, output_0=FAULT), later) == [
        "Cell.a.Norm.forward.0.output.0"
    ]
    drifted = node("Cell.a.Norm.forward.0", input_0=FAULT, output_0=1.4)
    assert origins(drifted, later) == ["Cell.a.Norm.forward.0.input.0"]


def test_after_an_origin_what_differs_a_little_has_inherited_and_not_drifted() -> None:
    for little in (1.5, 2.3):
        assert origins(
            node("Cell.a.Norm.forward.0", input_0=REST, output_0=FAULT),
            node("Cell.b.Dense.forward.0", None, (7.0, 2.0), input_0=little, output_0=FAULT),
        ) == ["Cell.a.Norm.forward.0.output.0"]


def test_before_anything_jumped_what_differs_a_little_explains_no_fault() -> None:
    assert origins(node("Cell.a.Dense.forward.0", input_0=2.0, output_0=FAULT)) == ["Cell.a.Dense.forward.0.output.0"]
    assert "Cell.b.Dense.forward.0.output.0" in origins(
        node("Cell.a.Norm.forward.0", input_0=REST, output_0=2.5),
        node("Cell.b.Dense.forward.0", None, (7.0, 2.0), input_0=2.5, output_0=FAULT),
    )


def test_before_an_origin_is_known_an_input_inherits_no_more_than_some_hundred_times_of_anything() -> None:
    """What comes before is five tolerances apart: that makes no million of it."""
    far = only(
        node("Cell.a.Block.forward.0", input_0=REST, output_0=0.9),
        node("Cell.b.Block.forward.0", input_0=0.9, output_0=5.0),
        node("Cell.c.Dense.forward.0", input_0=1e6, output_0=1e6),
    )
    assert far.target == "Cell.c.Dense.forward.0.input.0"
    assert "though values before it deviate far less: it comes from outside" in far.reason
