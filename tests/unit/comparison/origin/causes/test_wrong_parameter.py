"""A parameter that differs before anything is computed with it."""

from __future__ import annotations

import numpy as np
import pytest
from compare_nodes import CARRIED, FAULT, REST, found_origins, node, only, origins
from compare_parts import dump, tensor
from compare_updates import GRADIENT, WEIGHT, step

from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.model import OriginKind
from msprobe_ms.comparison.origin.causes.wrong_parameter import WrongParameter
from msprobe_ms.comparison.origin.earlier_steps import EarlierSteps
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.search import find_origins
from msprobe_ms.comparison.origin.walk import Walk
from msprobe_ms.comparison.pairing.pairs import pair
from msprobe_ms.comparison.pairing.rules.files import Mappings


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


@pytest.mark.parametrize(
    ("gradient", "kind"), [(GRADIENT, OriginKind.UPDATE), (None, OriginKind.RANDOM)], ids=["recorded", "not recorded"]
)
def test_random_numbers_do_not_excuse_an_update_of_a_gradient_that_agreed(
    gradient: np.ndarray | None, kind: OriginKind
) -> None:
    """A layer that is dropped at random draws a number in each step, whether or not it is dropped."""
    sides, before = [], step(WEIGHT, gradient)
    for drawn, rate in ((0.3, -1e-5), (0.8, -1e-3)):
        random = dump([tensor("output.0", np.array([drawn, 0.5]), "Mint.rand.0.forward")])
        after = step(WEIGHT + np.float32(rate) * GRADIENT)
        after.entries = random.entries | after.entries
        sides.append(after)
    pairs = pair(*sides, Mappings())
    measure(pairs, *sides, "statistics")
    found = find_origins(Evidence(pairs, earlier=EarlierSteps({1: lambda: (before, before)})))
    assert [each.kind for each in found if each.state == "parameters"] == [kind]
