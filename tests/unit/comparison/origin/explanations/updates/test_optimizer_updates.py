"""Inputs may drift further once the parameters were updated, and not before."""

from __future__ import annotations

import pytest
from compare_nodes import REST, node, origins

from msprobe_ms.comparison.model import Pair


def step(updated: float, jump: float) -> list[Pair]:
    layer = node("Cell.a.Dense.forward.0", input_0=0, parameters_weight=updated, output_0=REST)
    return [layer, node("Cell.b.Norm.forward.0", None, (7.0, 2.0), input_0=jump, output_0=jump)]


@pytest.mark.parametrize(("updated", "jump", "found"), [(0.1, 2.5, 0), (0.0, 2.5, 1), (0.1, 3.5, 1)])
def test_some_tolerances_of_drift(updated: float, jump: float, found: int) -> None:
    pairs = step(updated, jump)
    assert origins(*pairs) == ["Cell.b.Norm.forward.0.input.0"] * found
    assert pairs[1].rows[0].explained_by == ("" if found else "optimizer updates")
