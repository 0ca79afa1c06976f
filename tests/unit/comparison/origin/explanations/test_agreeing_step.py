"""Nothing of a step is an origin that lies far apart, where the gradients of all parameters and the results agree."""

from __future__ import annotations

import pytest
from compare_nodes import REST, node, origins

from msprobe_ms.comparison.model import Pair

#: Ratios to a tolerance of 1e-5: a deviation of 1, and one that a narrower float makes.
APART, ROUNDED = 1e5, 1e2
HEAD = "Cell.head.Dense"


def step(inside: float, *, result: float = REST, gradient: float = REST) -> list[Pair]:
    """A call whose output stands ``inside`` tolerances apart, the last module, and the gradients of both."""
    return [
        node("Cell.a.Reorder.forward.0", None, (3.0, 2.0), input_0=REST, output_0=inside),
        node(f"{HEAD}.forward.0", None, (4.0, 2.0), input_0=REST, output_0=result),
        node(f"{HEAD}.parameters_grad.0", None, (5.0, 2.0), parameters_grad_weight=gradient),
        node("Cell.stem.Dense.parameters_grad.0", None, (6.0, 2.0), parameters_grad_weight=REST),
    ]


@pytest.mark.parametrize(("result", "found"), [(REST, []), (2.0, [f"{HEAD}.forward.0.output.0"])])
def test_what_lies_far_apart_has_no_effect_in_a_step_that_agrees(result: float, found: list[str]) -> None:
    """Behind many layers results may be a few tolerances apart; where one layer sets them apart, it is told alone."""
    assert origins(*step(APART, result=result)) == found


@pytest.mark.parametrize("other", [{"result": APART}, {"gradient": APART}])
def test_it_is_an_origin_where_gradients_or_results_differ(other: dict[str, float]) -> None:
    assert origins(*step(APART, **other))[0] == "Cell.a.Reorder.forward.0.output.0"


@pytest.mark.parametrize(("gradient", "found"), [(5e1, f"{HEAD}.parameters_grad.0.weight"), (2e3, None)])
def test_a_gradient_that_differs_by_less_than_it_would_reach_is_told_alone(gradient: float, found: str | None) -> None:
    """A maximum at another place is judged by itself: an error of 1 in backward would set gradients apart by more."""
    wrong = node("Cell.a.Reorder.backward.0", None, (4.5, 2.0), input_0=REST, output_0=APART)
    first, *others = step(REST, gradient=gradient)[1:]
    assert origins(first, wrong, *others)[0] == (found or "Cell.a.Reorder.backward.0.output.0")


def test_a_small_error_may_fade_and_is_told() -> None:
    assert origins(*step(ROUNDED)) == ["Cell.a.Reorder.forward.0.output.0"]


def test_without_gradients_nothing_is_known_of_the_step() -> None:
    assert origins(*step(APART)[:2]) == ["Cell.a.Reorder.forward.0.output.0"]


def test_a_parameter_is_no_part_of_it() -> None:
    wrong = node("Cell.stem.Dense.forward.0", None, (1.0, 2.0), input_0=REST, parameters_weight=APART, output_0=REST)
    assert origins(wrong, *step(REST)) == ["Cell.stem.Dense.forward.0.parameters.weight"]
