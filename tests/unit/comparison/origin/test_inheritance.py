"""Whatever differs and is no origin says from whom it has its difference."""

from __future__ import annotations

import pytest
from compare_nodes import BLOCK, CARRIED, FAULT, REST, node

from msprobe_ms.comparison.model import Pair
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.search import find_origins


def sources(*pairs: Pair) -> dict[str, str]:
    find_origins(Evidence(pairs))
    rows = [row for pair in pairs for row in pair.rows if row.differs]
    return {row.target.name: row.inherited_from for row in rows if row.target is not None}


def test_what_is_computed_from_an_origin_and_what_encloses_it_inherit() -> None:
    norm, dense = "Cell.layers.0.norm.LayerNorm.forward.0", "Cell.layers.0.fc.Dense.forward.0"
    assert sources(
        node(norm, BLOCK, input_0=REST, output_0=FAULT),
        node(dense, BLOCK, input_0=FAULT, output_0=CARRIED),
        node(BLOCK, None, input_0=REST, output_0=CARRIED),
        node("Cell.layers.0.fc.Dense.backward.0", None, input_0=FAULT, output_0=CARRIED),
    ) == {
        f"{norm}.output.0": "",
        f"{dense}.input.0": norm,
        f"{dense}.output.0": norm,
        f"{BLOCK}.output.0": norm,
        "Cell.layers.0.fc.Dense.backward.0.input.0": norm,
        "Cell.layers.0.fc.Dense.backward.0.output.0": norm,
    }


@pytest.mark.parametrize(
    "origin", [{"input_0": FAULT}, {"input_0": REST, "parameters_weight": FAULT}, {"input_0": REST}]
)
def test_what_its_node_gives_out_besides_follows_from_an_origin(origin: dict[str, float]) -> None:
    call = "Cell.fc.Dense.forward.0"
    found = sources(node(call, None, (5.0, 2.0), **origin, output_0=FAULT, output_1=CARRIED))
    of_outputs = {name: source for name, source in found.items() if ".output." in name}
    begins = {} if len(found) > 2 else {f"{call}.output.0": ""}
    assert of_outputs == {f"{call}.output.0": call, f"{call}.output.1": call, **begins}


def test_of_several_parameters_of_a_call_one_is_the_origin() -> None:
    call = "Cell.fc.Dense.forward.0"
    found = sources(node(call, input_0=REST, parameters_bias=CARRIED, parameters_weight=FAULT))
    assert set(found.values()) == {"", call}


def test_of_two_origins_each_hands_on_its_own() -> None:
    left, right = "Cell.left.Dense.forward.0", "Cell.right.Dense.forward.0"
    found = sources(
        node(left, None, (3.0, 1.0), input_0=0, output_0=FAULT),
        node(right, None, (5.0, 2.0), input_0=0, output_0=FAULT),
        node("Cell.after_left.Dense.forward.0", None, (3.0, 1.0), input_0=FAULT, output_0=CARRIED),
        node("Cell.after_right.Dense.forward.0", None, (5.0, 2.0), input_0=FAULT, output_0=CARRIED),
    )
    assert found["Cell.after_left.Dense.forward.0.output.0"] == left
    assert found["Cell.after_right.Dense.forward.0.output.0"] == right


def test_calls_around_which_the_fault_lies_inherit_from_what_encloses_them() -> None:
    inside = "Cell.a.out.Dense.forward.0"
    found = sources(
        node(inside, "Cell.a.Attention.forward.0", (5.0, 2.0), input_0=FAULT, output_0=FAULT),
        node("Cell.a.Attention.forward.0", None, input_0=REST, output_0=FAULT),
    )
    assert found[f"{inside}.input.0"] == found[f"{inside}.output.0"] == "Cell.a.Attention.forward.0"


def test_where_nothing_begins_nothing_is_inherited() -> None:
    assert set(sources(node(BLOCK, None, input_0=0.9, output_0=1.2)).values()) == {""}
