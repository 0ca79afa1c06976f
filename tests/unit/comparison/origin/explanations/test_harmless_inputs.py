"""Inputs a little beyond their tolerance, of calls that come out right."""

from __future__ import annotations

from compare_nodes import BLOCK, NEXT, REST, node, origins


def test_a_small_difference_without_effect_is_no_origin() -> None:
    drifted = node(BLOCK, None, (5.0, 2.0), input_0=20, output_0=REST)
    assert origins(drifted) == []
    assert drifted.rows[0].explained_by == "input without effect"


def test_it_still_reaches_what_is_computed_from_it() -> None:
    drifted = node(BLOCK, None, (5.0, 2.0), input_0=20, output_0=REST)
    assert origins(drifted, node(NEXT, None, (6.0, 3.0), input_0=4, output_0=4)) == []


def test_with_an_effect_it_is_one() -> None:
    assert origins(node(BLOCK, None, (5.0, 2.0), input_0=20, output_0=20)) == [f"{BLOCK}.input.0"]
