"""Rounding explains the tolerance, and hardly any of it while all was equal to the bit."""

from __future__ import annotations

import pytest
from compare_nodes import FAULT, node

from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.explanations.rounding import Rounding
from msprobe_ms.comparison.origin.walk import Walk


@pytest.mark.parametrize(("layers", "share"), [(0, 1.0), (3, 1 / 8)])
def test_less_after_layers_that_were_equal_to_the_bit(layers: int, share: float) -> None:
    equal = [node(f"Cell.{i}.Dense.forward.0", None, (i, 2.0), input_0=0, output_0=0) for i in range(layers)]
    fault = node("Cell.a.Norm.forward.0", input_0=0, parameters_weight=FAULT, output_0=FAULT)
    evidence = Evidence([*equal, fault])
    walk = Walk(evidence)
    for each in evidence.nodes[:-1]:
        walk.visit(each)
    _, parameter, result = fault.rows
    rounding, last = Rounding(evidence), evidence.nodes[-1]
    allowed = [rounding.allows(row, last, walk) for row in (parameter, result)]
    assert [each.up_to if each else None for each in allowed] == pytest.approx([1e-5, share * 1e-5])
