"""A parameter that differs before anything is computed with it."""

from __future__ import annotations

from compare_nodes import CARRIED, FAULT, REST, found_origins, node, only, origins

from msprobe_ms.comparison.origin.causes.wrong_parameter import WrongParameter
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.search import Walk


def test_a_parameter_that_differs_is_named_once_however_often_its_module_is_called() -> None:
    cell = "Cell.gru.GRUCell.forward."
    assert origins(
        node("Cell.gru.x.Dense.forward.0", f"{cell}0", input_0=0.0, parameters_weight=FAULT, output_0=0.0),
        node(f"{cell}0", None, input_0=0.0, output_0=0.0),
        node("Cell.gru.x.Dense.forward.1", f"{cell}1", input_0=0.0, parameters_weight=FAULT, output_0=FAULT),
        node(f"{cell}1", None, input_0=0.0, output_0=FAULT),
    ) == ["Cell.gru.x.Dense.forward.0.parameters.weight"]


def test_a_parameter_that_differs_is_named_itself() -> None:
    found = only(
        node("Cell.a.Dense.forward.0", input_0=REST, parameters_weight=FAULT, output_0=FAULT),
        node("Cell.b.Dense.forward.0", input_0=FAULT, parameters_weight=REST, output_0=FAULT),
    )
    assert (found.target, found.state) == ("Cell.a.Dense.forward.0.parameters.weight", "parameters")
    assert not any("other modules" in each for each in (found.reason, *found.details))
    assert "learning rate" in found.reason and "checkpoint" in found.reason
    found = only(
        node("Cell.a.Dense.forward.0", input_0=REST, parameters_weight=FAULT, output_0=FAULT),
        node("Cell.b.Dense.forward.0", input_0=FAULT, parameters_weight=FAULT, output_0=FAULT),
        node("Cell.c.Dense.forward.0", input_0=FAULT, parameters_weight=REST, output_0=FAULT),
    )
    assert "parameters of 1 of the 2 other modules with parameters differ, too" in found.details


def test_a_fault_far_beyond_what_a_parameter_explains_is_told_with_it() -> None:
    others = [node(f"Cell.{i}.Dense.forward.0", input_0=0, parameters_weight=0, output_0=REST) for i in range(2)]
    found = only(*others, node("Cell.a.LayerNorm.forward.0", input_0=REST, parameters_weight=1.5, output_0=FAULT))
    assert (found.kind, found.target) == ("parameter", "Cell.a.LayerNorm.forward.0.parameters.weight")
    assert found.details[0].endswith("more than the parameter explains: check the layer's settings, too")


def test_of_several_parameters_the_worst_that_nothing_explains_is_named() -> None:
    evidence = Evidence([node("Cell.a.Dense.forward.0", input_0=0, parameters_weight=CARRIED, parameters_bias=FAULT)])
    (dense,) = evidence.nodes
    found = WrongParameter(evidence).find(dense, [dense.pair.rows[1]], Walk(evidence))
    assert found is not None and found.origin is not None
    assert found.origin.target == "Cell.a.Dense.forward.0.parameters.weight"


def test_where_all_modules_differ_the_checkpoint_is_asked_for() -> None:
    other = 1e5
    first, *_ = found_origins(
        *(
            node(f"Cell.{i}.Dense.forward.0", input_0=other if i else REST, parameters_weight=other, output_0=other)
            for i in range(5)
        )
    )
    assert (first.kind, first.target) == ("parameter", "Cell.0.Dense.forward.0.parameters.weight")
    assert first.reason == (
        "parameters of 5 of 5 modules differ before they are used: was the checkpoint loaded? (in a later step check "
        "the optimizer and its learning rate)"
    )
    assert first.details[0] == "parameters.weight deviates by 1 of its size (tolerance 1e-05)"
