"""An input that differs though nothing before it does."""

from __future__ import annotations

from compare_nodes import FAULT, REST, node, only, origins


def test_an_input_that_differs_before_anything_computed_does_is_an_origin() -> None:
    found = only(
        node("Functional.layer_norm.1.forward", input_0=REST, output_0=REST),
        node("Functional.layer_norm.2.forward", input_0=REST, input_2=FAULT, output_0=FAULT),
        node("Functional.linear.6.forward", input_0=FAULT, output_0=FAULT),
    )
    assert (found.target, found.state) == ("Functional.layer_norm.2.forward.input.2", "input")
    assert "it comes from outside" in found.reason


def test_the_input_of_what_encloses_a_module_differed_before_the_modules_own() -> None:
    found = only(
        node("Cell.a.attention.drop.Dropout.forward.0", "Cell.a.Attention.forward.0", input_0=FAULT, output_0=FAULT),
        node("Cell.a.Attention.forward.0", "Cell.a.Layer.forward.0", input_0=REST, input_1=FAULT, output_0=FAULT),
        node("Cell.a.Layer.forward.0", None, input_0=REST, input_1=FAULT, output_0=FAULT),
    )
    assert found.target == "Cell.a.Layer.forward.0.input.1"


def test_what_differs_inside_a_call_does_not_hide_that_the_call_differs() -> None:
    """In dumps equal to the bit so far, both within the tolerance of a net: the call inside takes in what was cast."""
    equal = [node(f"Cell.{i}.Dense.forward.0", None, (i, 2.0), input_0=0, output_0=0) for i in range(4)]
    found = only(
        *equal,
        node("Primitive.conv2d.Conv2D.0.forward", "Cell.out.Conv2d.forward.0", (7.0, 2.0), input_0=0.18, output_0=0.1),
        node("Cell.out.Conv2d.forward.0", None, (8.0, 2.0), input_0=0, output_0=0.13),
    )
    assert found.target == "Cell.out.Conv2d.forward.0.output.0"


def test_an_input_a_little_beyond_its_bound_after_noise_of_that_size_is_no_origin() -> None:
    noisy = node("Cell.a.Dense.backward.0", input_0=REST, output_0=0.6)
    assert origins(noisy, node("Cell.b.Dense.backward.0", input_0=1.1, output_0=1.1)) == []
    assert origins(noisy, node("Cell.b.Dense.backward.0", input_0=FAULT, output_0=FAULT)) != []


def test_an_input_that_jumps_after_drift_just_beyond_the_bound_is_an_origin() -> None:
    """A recurrent layer gives out 1.08 tolerances; the code after it drops a residual."""
    drifted = node("Cell.gru.GRU.forward.0", input_0=0, output_0=1.08)
    assert origins(drifted, node("Cell.norm.LayerNorm.forward.0", None, (7.0, 2.0), input_0=8e4, output_0=9e4)) == [
        "Cell.norm.LayerNorm.forward.0.input.0"
    ]
