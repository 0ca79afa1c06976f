"""Why values are beyond their tolerances though no error begins at them, in a line."""

from __future__ import annotations

from copy import copy

from compare_parts import tensor

from msprobe_ms.comparison.model import Allowance, Effect, Row
from msprobe_ms.comparison.origin.explanations import EXPLANATIONS
from msprobe_ms.comparison.reporting.reasons import REASONS, differing_lines, withdrawn_lines


def test_values_of_many_reasons_are_all_counted_in_a_line() -> None:
    item = tensor("output.0", [2.0])
    row = Row(item, item, deviation=2e-5, tolerance=1e-5)

    def explained(by: str) -> Row:
        one = copy(row)
        one.explained = Allowance(by, 1.0)
        return one

    reasons = ["ReLU switching"] * 57 + ["inherited error"] * 7 + ["rounding"] * 5 + ["results agree"] * 3
    line = next(differing_lines(map(explained, reasons)))
    assert line == (
        "  72 values are beyond their tolerances: 57 because rounding decides the side of a ReLU, 7 because an earlier "
        "value differs, 8 for 2 other reasons"
    )


def test_every_explanation_has_a_reason_and_two_fit_a_line() -> None:
    assert {each.name for each in EXPLANATIONS} | {""} == set(REASONS)
    first, second = sorted(REASONS.values(), key=len)[-2:]
    both = f"5000 because {first}, 4000 because {second}"
    assert len(f"  9999 values are beyond their tolerances: {both}, 99 for 9 other reasons") <= 160


def test_values_whose_record_alone_differs_are_told_apart() -> None:
    item = tensor("output.0", [2.0])
    row = Row(item, item, deviation=2e-5, tolerance=1e-5)
    assert list(withdrawn_lines([row])) == []
    row.explained = Allowance("later uses agree", effect=Effect.NO_ERROR)
    line = "  1 value is beyond its tolerance and is not judged because later uses of the tensor agree"
    assert list(withdrawn_lines([row])) == [line]
    assert list(differing_lines([row])) == []
