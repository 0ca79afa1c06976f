"""Error that came in explains some times as much of what goes out."""

from __future__ import annotations

import pytest
from compare_nodes import FAULT, node

from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.explanations.propagated_error import PropagatedError
from msprobe_ms.comparison.origin.walk import Walk


def test_a_result_is_explained_by_its_inputs_and_an_input_by_what_came_before() -> None:
    pair = node("Cell.b.Block.forward.0", None, (7.0, 2.0), input_0=0.5, parameters_weight=0, output_0=FAULT)
    evidence = Evidence([node("Cell.a.Block.forward.0", input_0=0.1, output_0=0.2), pair])
    walk = Walk(evidence)
    walk.visit(evidence.nodes[0])
    explanation, last = PropagatedError(evidence), evidence.nodes[1]
    taken, parameter, given = (explanation.allows(row, last, walk) for row in pair.rows)
    assert taken is not None and given is not None and parameter is None
    assert taken.up_to == pytest.approx((1 + 10 * 0.2) * 1e-5)
    assert given.up_to == pytest.approx((1 + 10 * 0.5) * 1e-5)


def test_what_it_takes_in_beyond_all_bounds_explains_anything() -> None:
    pair = node("Functional.op.0.forward", input_0=float("inf"), output_0=FAULT)
    evidence = Evidence([pair])
    allowed = PropagatedError(evidence).allows(pair.rows[1], evidence.nodes[0], Walk(evidence))
    assert allowed is not None and allowed.up_to == float("inf")
