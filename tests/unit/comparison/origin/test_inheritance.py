"""From which origin a row has its difference."""

from __future__ import annotations

from compare_nodes import BLOCK, CARRIED, FAULT, REST, node

from msprobe_ms.comparison.model import Pair
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.search import find_origins


class TestInheritance:
    """Whatever differs and is no origin says from whom it has its difference."""

    @staticmethod
    def sources(*pairs: Pair) -> dict[str, str]:
        find_origins(Evidence(pairs))
        rows = [row for pair in pairs for row in pair.rows if row.differs]
        return {row.target.name: row.inherited_from for row in rows if row.target is not None}

    def test_what_is_computed_from_an_origin_and_what_encloses_it_inherit(self) -> None:
        norm, dense = "Cell.layers.0.norm.LayerNorm.forward.0", "Cell.layers.0.fc.Dense.forward.0"
        assert self.sources(
            node(norm, BLOCK, input_0=REST, output_0=FAULT),
            node(dense, BLOCK, input_0=FAULT, output_0=CARRIED),
            node(BLOCK, None, input_0=REST, output_0=CARRIED),
            node("Cell.layers.0.fc.Dense.backward.0", None, input_0=FAULT, output_0=REST),
        ) == {
            f"{norm}.output.0": "",
            f"{dense}.input.0": norm,
            f"{dense}.output.0": norm,
            f"{BLOCK}.output.0": norm,
            "Cell.layers.0.fc.Dense.backward.0.input.0": norm,
        }

    def test_of_two_origins_each_hands_on_its_own(self) -> None:
        left, right = "Cell.left.Dense.forward.0", "Cell.right.Dense.forward.0"
        found = self.sources(
            node(left, None, (3.0, 1.0), input_0=0, output_0=FAULT),
            node(right, None, (5.0, 2.0), input_0=0, output_0=FAULT),
            node("Cell.after_left.Dense.forward.0", None, (3.0, 1.0), input_0=FAULT, output_0=CARRIED),
            node("Cell.after_right.Dense.forward.0", None, (5.0, 2.0), input_0=FAULT, output_0=CARRIED),
        )
        assert found["Cell.after_left.Dense.forward.0.output.0"] == left
        assert found["Cell.after_right.Dense.forward.0.output.0"] == right

    def test_calls_around_which_the_fault_lies_inherit_from_what_encloses_them(self) -> None:
        inside = "Cell.a.out.Dense.forward.0"
        found = self.sources(
            node(inside, "Cell.a.Attention.forward.0", (5.0, 2.0), input_0=FAULT, output_0=FAULT),
            node("Cell.a.Attention.forward.0", None, input_0=REST, output_0=FAULT),
        )
        assert found[f"{inside}.input.0"] == found[f"{inside}.output.0"] == "Cell.a.Attention.forward.0"

    def test_where_nothing_begins_nothing_is_inherited(self) -> None:
        assert set(self.sources(node(BLOCK, None, input_0=0.9, output_0=1.2)).values()) == {""}
