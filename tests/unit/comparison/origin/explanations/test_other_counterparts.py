"""A call that stands beside another than its counterpart in forward stands beside it in backward."""

from __future__ import annotations

import pytest
from compare_nodes import REST, node, origins

from msprobe_ms.comparison.model import Pair

#: Ratios to a tolerance of 1e-5: a deviation of 1, and one that a narrower float makes.
APART, ROUNDED = 1e5, 1e3
BLOCK, SCALE = "Cell.layers.0.Block", "Cell.layers.0.scale.Scale"


def step(inside: float, gradient: float, *, given: float = REST, made: float | None = None) -> list[Pair]:
    """A call inside a block, so many tolerances apart in forward, and both their gradients.

    ``inside``    what the call takes in, and gives out but for ``made``
    ``gradient``  the one that it hands on, and ``given`` the one of the block
    """
    made = inside if made is None else made
    return [
        node(f"{SCALE}.forward.0", f"{BLOCK}.forward.0", (3.0, 2.0), input_0=inside, output_0=made),
        node(f"{BLOCK}.forward.0", None, (4.0, 2.0), input_0=REST, output_0=REST),
        node(f"{SCALE}.backward.0", f"{BLOCK}.backward.0", (5.0, 2.0), input_0=REST, output_0=gradient),
        node(f"{BLOCK}.backward.0", None, (6.0, 2.0), input_0=REST, output_0=given),
    ]


def test_its_gradients_are_beside_others_where_those_around_agree() -> None:
    assert origins(*step(APART, APART)) == []


def test_the_gradient_of_what_stands_beside_another_value_does_so_too() -> None:
    """A projection here, the attention that ends with it there: they take in other tensors and give out one."""
    assert origins(*step(APART, APART, made=REST)) == []


def test_an_error_of_the_gradients_shows_in_the_calls_around_it() -> None:
    assert origins(*step(APART, APART, given=APART)) == [f"{BLOCK}.backward.0.output.0"]


@pytest.mark.parametrize("inside", [REST, ROUNDED])
def test_a_call_beside_its_counterpart_is_judged_by_its_own_gradients(inside: float) -> None:
    assert f"{SCALE}.backward.0.output.0" in origins(*step(inside, APART))
