"""The nodes of a comparison and how they are connected."""

from __future__ import annotations

import pytest
from compare_nodes import BLOCK, FAULT, NEXT, REST, node, origins

from msprobe_ms.comparison.origin.connected_nodes import nodes_of


@pytest.mark.parametrize("ring", [(BLOCK,), (BLOCK, NEXT), (BLOCK, NEXT, "Cell.layers.2.Block.forward.0")])
def test_calls_that_enclose_each_other_are_judged_all_the_same(ring: tuple[str, ...]) -> None:
    """What a damaged construct.json says: {"A": "A"}, {"A": "B", "B": "A"}."""
    pairs = [
        node(name, ring[(place + 1) % len(ring)], (3.0 + place, 1.0), input_0=REST, output_0=REST)
        for place, name in enumerate(ring)
    ]
    inside = node("Cell.layers.0.fc.Dense.forward.0", BLOCK, (9.0, 9.0), input_0=20, output_0=FAULT)
    assert origins(*pairs, inside) == [f"{inside.target.name}.input.0" if inside.target else ""]
    found = nodes_of(pairs)
    assert all(len(list(each.ancestors())) < len(ring) for each in found)
    assert sum(each.parent is None for each in found) == 1


def test_a_gradient_is_made_by_the_call_that_stands_for_several_layers() -> None:
    forward = node("Cell.h.0.attn.c_attn + attn.c_proj.Conv1D.forward.0", None, input_0=2.0, output_0=8.0)
    backward = node("Cell.h.0.attn.c_attn + attn.c_proj.Conv1D.backward.0", None, (5.0, 2.0), input_0=3.0)
    gradient = node("Cell.h.0.attn.c_proj.Conv1D.parameters_grad.0", None, (6.0, 2.0), parameters_grad_bias=4.0)
    found = nodes_of([forward, backward, gradient])
    assert list(found[2].context) == found[:2]
    assert found[2].ratio_before == 8.0
