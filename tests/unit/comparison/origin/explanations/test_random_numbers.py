"""Calls that draw random numbers."""

from __future__ import annotations

from compare_nodes import BLOCK, CARRIED, FAULT, REST, node, only, origins

from msprobe_ms.comparison.model import Comparison, Pair, Row
from msprobe_ms.comparison.origin.evidence import Evidence
from msprobe_ms.comparison.origin.search import find_origins
from msprobe_ms.comparison.run import verdict_of


class TestRandomOperations:
    DROPOUT = "Cell.layers.0.drop.Dropout.forward.0"

    def dropout(self, parent: str | None = BLOCK, **strains: float) -> Pair:
        """One that gives out other figures than it takes in."""
        pair = node(self.DROPOUT, parent, **strains)
        taken, given = pair.rows
        assert given.target is not None
        drawn = given.target._replace(mean=0.2)
        pair.rows = [taken, Row(drawn, drawn, deviation=given.deviation, tolerance=given.tolerance)]
        return pair

    def test_one_is_told_as_random_and_what_follows_it_is_nobodys_fault(self) -> None:
        found = only(
            self.dropout(input_0=REST, output_0=FAULT),
            node("Cell.layers.0.fc.Dense.forward.0", BLOCK, input_0=FAULT, output_0=CARRIED),
            node(BLOCK, None, input_0=REST, output_0=CARRIED),
        )
        assert (found.kind, found.target) == ("random", f"{self.DROPOUT}.output.0")
        assert "draws random numbers" in found.reason and "rm_dropout" in found.reason

    def test_one_of_probability_0_draws_nothing(self) -> None:
        """It gives out what it takes in, on both sides: a learning rate of the step before is not its fault."""
        weights = node("Cell.layers.0.fc.Dense.forward.0", BLOCK, input_0=REST, parameters_weight=FAULT, output_0=FAULT)
        found = only(weights, node(self.DROPOUT, BLOCK, input_0=FAULT, output_0=FAULT))
        assert (found.kind, found.target) == ("parameter", "Cell.layers.0.fc.Dense.forward.0.parameters.weight")

    def test_a_fault_before_it_is_found(self) -> None:
        fault = node("Cell.layers.0.fc.Dense.forward.0", BLOCK, input_0=REST, output_0=FAULT)
        found = find_origins(Evidence([fault, self.dropout(input_0=FAULT, output_0=FAULT)]))
        assert [origin.kind for origin in found] == ["computation"]

    def test_dropout_that_agrees_is_no_matter(self) -> None:
        assert origins(self.dropout(None, input_0=REST, output_0=REST)) == []

    def test_the_verdict_is_about_what_can_be_told_before_it(self) -> None:
        pair = self.dropout(None, input_0=REST, output_0=FAULT)
        assert verdict_of(Comparison("statistics", [pair], [], find_origins(Evidence([pair])))) == "incomplete"
        assert verdict_of(Comparison("statistics", [pair], [], [])) == "consistent"
