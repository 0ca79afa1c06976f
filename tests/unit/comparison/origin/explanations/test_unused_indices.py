"""Indices of the largest of nearly equal elements."""

from __future__ import annotations

from dataclasses import replace

import pytest
from compare_nodes import REST, node, origins

from msprobe_ms.comparison.model import Pair, Row


def chosen(name: str, index: float, taken: float = 0.1, *, used: bool = False) -> list[Pair]:
    """A function that gives out values and, ``index`` tolerances apart, indices; a later call may take these in."""
    call = node(f"Tensor.{name}.0.forward", size=20_000, input_0=taken, output_0=taken, output_1=index)
    after = node("Tensor.gather.0.forward", size=20_000, given=(2.0, 5.0), input_0=REST, input_1=index, output_0=REST)
    pairs = [_with_indices(call, "output"), _with_indices(after, "input")]
    return pairs if used else pairs[:1]


def _with_indices(pair: Pair, state: str) -> Pair:
    """The pair whose second tensor of a state is one of indices."""
    rows = []
    for row in pair.rows:
        if row.target is not None and row.target.state == state and row.target.path == ("1",):
            item = row.target._replace(dtype="Int64", maximum=3.0, norm=84.0)
            row = Row(item, item, deviation=row.deviation, tolerance=row.tolerance)
        rows.append(row)
    return replace(pair, rows=rows)


@pytest.mark.parametrize("name", ["max", "min", "topk", "sort", "median"])
def test_a_few_that_nothing_takes_in_are_no_origin(name: str) -> None:
    assert origins(*chosen(name, index=500)) == []


def test_more_than_may_have_changed_places_are_one() -> None:
    assert origins(*chosen("max", index=10_000)) == ["Tensor.max.0.forward.output.1"]


def test_of_equal_elements_none_changes_places() -> None:
    assert origins(*chosen("max", index=500, taken=0.0)) == ["Tensor.max.0.forward.output.1"]


def test_a_function_that_chooses_nothing_has_none() -> None:
    assert origins(*chosen("unique", index=500)) == ["Tensor.unique.0.forward.output.1"]


def test_indices_that_a_later_call_takes_in_are_told() -> None:
    assert origins(*chosen("max", index=500, used=True)) == ["Tensor.max.0.forward.output.1"]
