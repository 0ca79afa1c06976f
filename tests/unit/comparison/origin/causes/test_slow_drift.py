"""Where error grows most, told on the nodes that were searched."""

from __future__ import annotations

from msprobe_ms.comparison.origin.causes.slow_drift import steepest
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.nodes import nodes_of
from msprobe_ms.comparison.origin.search import find_origins
from tests.unit.comparison.origin.test_search import REST, node

BLOCK, LAYER, LATER = "Cell.a.Block.forward.0", "Cell.a.k.Dense.forward.0", "Cell.b.Norm.forward.0"


def test_a_block_with_a_parameter_that_was_let_pass_inside_is_not_where_error_grows() -> None:
    """Fresh nodes of the same rows know nothing of what explained them."""
    others = [node(f"Cell.{i}.Dense.forward.0", input_0=0, parameters_weight=0.1, output_0=REST) for i in range(9)]
    pairs = [
        *others,
        node(LAYER, BLOCK, (4.0, 4.0), input_0=REST, parameters_bias=8.0, output_0=12.0),
        node(BLOCK, None, (5.0, 4.0), input_0=REST, output_0=12.0),
        node(LATER, None, (6.0, 4.0), input_0=12.0, output_0=30.0),
    ]
    evidence = Evidence(pairs)
    assert find_origins(evidence) == []
    assert pairs[9].rows[1].explained_by == "optimizer noise"
    growth = steepest(evidence.nodes)
    assert growth is not None and growth.row.target is not None
    assert (growth.row.target.name, growth.before, growth.after) == (f"{LATER}.output.0", 12.0, 30.0)
    row = pairs[10].rows[1]
    for each in pairs:
        for one in each.rows:
            one.explained = None
    unaware = steepest(nodes_of(pairs))
    assert unaware is not None and unaware.row is row
