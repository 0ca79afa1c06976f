"""Of rows beyond their tolerance it is said what every explanation allowed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from compare_parts import dump, tensor

from msprobe_ms.comparison.model import Allowance, Comparison, Row
from msprobe_ms.comparison.origin.allowances import describe_allowances, describe_explanations
from msprobe_ms.comparison.origin.explanations import EXPLANATIONS
from msprobe_ms.comparison.origin.protocols import Phase, Surveyed
from msprobe_ms.comparison.origin.search import explanations_tried
from msprobe_ms.comparison.pairing.rules.files import Mappings
from msprobe_ms.comparison.run import Options, compare_dumps, evidence_of
from msprobe_ms.dump.model import Dump


def step(*layers: tuple[float, float]) -> Dump:
    """Calls with one input and one output each, given by their second element."""
    return dump(
        [
            tensor(place, np.float32([1, amount]), f"Cell.{number}.Block.forward.0")
            for number, both in enumerate(layers)
            for place, amount in zip(("input.0", "output.0"), both, strict=True)
        ]
    )


def described(
    target: Dump, golden: Dump, describe: Callable[..., str] = describe_explanations
) -> tuple[Comparison, list[str]]:
    comparison = compare_dumps(target, golden, Options())
    rows = [row for row in comparison.rows if row.differs]
    before = [(row.explained, row.reason) for row in comparison.rows]
    tried = explanations_tried(evidence_of(comparison.pairs, target, golden, Mappings()), rows)
    assert [(row.explained, row.reason) for row in comparison.rows] == before
    return comparison, [describe(row, tried[row]) for row in rows]


def test_an_origin_says_that_nothing_explains_it_and_what_follows_what_does() -> None:
    golden = step((2, 3), (3, 4), (4, 5))
    _, (first, second, *_) = described(step((2, 3.1), (3.1, 4.1), (4.1, 5)), golden)
    assert first.startswith("output.0: its deviation is an error; too small to explain it: rounding (up to ")
    assert ", propagated error (up to " in first
    assert second.startswith("input.0: explained by inherited error; too small to explain it: rounding (up to ")


def test_a_row_that_inherits_names_the_origin() -> None:
    row = Row(tensor("output.0", np.float32([1, 2])), tensor("output.0", np.float32([1, 3])))
    row.inherited_from = "Primitive.norm.LayerNorm.3.forward"
    tried = [("rounding", Allowance("rounding", 1e-5)), ("later uses agree", None)]
    assert describe_explanations(row, tried) == (
        "output.0: its error comes from Primitive.norm.LayerNorm.3.forward; too small to explain it: "
        "rounding (up to 1e-05)"
    )


def test_every_explanation_that_was_asked_is_named() -> None:
    _, (first, *_) = described(step((2, 3.1)), step((2, 3)), describe_allowances)
    for each in EXPLANATIONS:
        of_origins_alone = not issubclass(each, Surveyed) and each.phase is Phase.ORIGIN
        assert (each.name in first) == (not of_origins_alone)


def test_the_table_names_what_let_a_row_pass() -> None:
    comparison, _ = described(step((2, 3.1), (3.1, 4.1)), step((2, 3), (3, 4)))
    assert [row.explained_by for row in comparison.rows] == ["", "", "inherited error", "inherited error"]


def test_a_row_without_explanation_has_no_name() -> None:
    assert Row(None, None).explained_by == ""
