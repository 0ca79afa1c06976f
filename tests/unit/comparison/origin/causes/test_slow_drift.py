"""Error that grows by degrees, and where it grows most."""

from __future__ import annotations

import pytest
from compare_nodes import BLOCK, FAULT, REST, node, only, origins

from msprobe_ms.comparison.origin.causes.slow_drift import steepest
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.search import find_origins

LAYER, LATER = "Cell.a.k.Dense.forward.0", "Cell.b.Norm.forward.0"


class TestDrift:
    def test_error_that_crosses_the_bound_by_degrees_is_no_origin(self) -> None:
        deep = [
            node(f"Cell.layers.{i}.L.forward.0", input_0=1.2**i / 10, output_0=1.2 ** (i + 1) / 10) for i in range(20)
        ]
        assert origins(*deep) == []

    def test_drift_far_beyond_the_bound_is_told_at_its_crossing(self) -> None:
        deep = [
            node(f"Cell.layers.{i}.L.forward.0", input_0=2.0**i / 10, output_0=2.0 ** (i + 1) / 10) for i in range(9)
        ]
        found = only(*deep)
        assert found.target == "Cell.layers.3.L.forward.0.output.0"
        assert found.reason.startswith("the error grows gradually")

    def test_the_place_where_it_grows_most_is_told_with_it(self) -> None:
        found = only(
            node("Cell.a.L.forward.0", input_0=0.5, output_0=1.5),
            node("Cell.b.L.forward.0", None, (7.0, 2.0), input_0=1.5, output_0=6.0),
            node("Cell.c.L.forward.0", None, (8.0, 2.0), input_0=6.0, output_0=28.0),
        )
        assert (found.kind, found.target) == ("drift", "Cell.a.L.forward.0.output.0")
        assert found.reason.endswith("look where it grows most")
        assert found.details == ("it grows most at Cell.c.L.forward.0.output.0, from 6 to 28 times its tolerance",)

    def test_the_call_at_which_it_grows_more_than_at_all_others_is_told_itself(self) -> None:
        found = only(
            node("Cell.a.L.forward.0", input_0=0.5, output_0=1.5),
            node("Cell.b.L.forward.0", None, (7.0, 2.0), input_0=1.5, output_0=3.0),
            node("Cell.c.L.forward.0", BLOCK, (8.0, 2.0), input_0=3.0, output_0=24.0),
            node(BLOCK, None, (8.0, 2.0), input_0=3.0, output_0=24.0),
        )
        assert (found.kind, found.target) == ("drift", "Cell.c.L.forward.0.output.0")
        assert found.reason.endswith("is added here")

    def test_a_jump_after_drift_too_far_to_be_judged_is_where_the_error_begins(self) -> None:
        found = only(
            node("Cell.a.L.forward.0", input_0=0.5, output_0=4.0),
            node("Cell.b.L.forward.0", None, (7.0, 2.0), input_0=4.0, output_0=12.0),
            node("Cell.c.L.forward.0", None, (8.0, 2.0), input_0=12.0, output_0=FAULT),
        )
        assert (found.kind, found.target) == ("drift", "Cell.c.L.forward.0.output.0")
        assert found.reason.endswith("is added here")
        assert found.details == ("it grows at Cell.c.L.forward.0.output.0, from 12 to 400 times its tolerance",)

    @pytest.mark.parametrize(("name", "found"), [("sin", []), ("selu", ["Mint.selu.0.forward.output.0"])])
    def test_what_one_call_rounds_by_its_condition_is_no_drift(self, name: str, found: list[str]) -> None:
        """A sine of arguments up to 900 rounds 900 times as much as it takes in; from there the error may grow."""
        called = f"Mint.{name}.0.forward"
        assert origins(
            node(called, None, (900.0, 300.0), given=(1.0, 2.0), input_0=0.02, output_0=8.0),
            node("Cell.a.L.forward.0", None, (1.0, 2.0), given=(2.0, 3.0), input_0=8.0, output_0=20.0),
        ) == found  # fmt: skip

    def test_gradients_that_switches_explain_do_not_hide_what_forward_drifts_by(self) -> None:
        forward = [
            node(f"Cell.{i}.relu.ReLU.forward.0", None, (i, 2.0), size=20_000, input_0=2.0**i, output_0=2.0 ** (i + 1))
            for i in range(5)
        ]
        gradient = node("Cell.1.relu.ReLU.backward.0", size=20_000, input_0=REST, output_0=500)
        assert origins(*forward, gradient) == ["Cell.0.relu.ReLU.forward.0.output.0"]
        assert origins(*forward[:2], gradient) == []

    def test_a_fault_beyond_drift_is_found_at_the_fault(self) -> None:
        assert origins(
            node("Cell.a.L.forward.0", input_0=0.8, output_0=1.3),
            node("Cell.b.L.forward.0", input_0=1.3, output_0=FAULT),
        ) == ["Cell.b.L.forward.0.output.0"]


def test_a_block_with_a_parameter_that_was_let_pass_inside_is_not_where_error_grows() -> None:
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
