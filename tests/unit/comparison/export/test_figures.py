"""What is told of a value and of a call, in text."""

from __future__ import annotations

import math

from compare_parts import null, tensor, value
from export_dumps import WRONG, faulty, number_of

from msprobe_ms.comparison.export.figures import EXPLANATIONS, about, as_text, compared, figures, in_one_line


def test_figures_have_all_their_digits_and_nothing_that_is_not_there() -> None:
    third = figures(tensor("output.0", [1 / 3, math.nan], md5=None, data_name=None))
    assert third["shape"] == "[2]" and third["Norm"] == "nan" and "md5" not in third
    assert figures(tensor("output.0", [1 / 3]))["Max"] == "0.3333333333333333"
    assert figures(value("input.0", 7))["value"] == "7"
    assert figures(null("input.0")) == {}


def test_what_was_compared_has_the_names_that_are_explained() -> None:
    topology = faulty()
    judged = topology.graphs[1].judged[number_of(topology, WRONG)]
    row = judged.rows_by_name()[f"{WRONG}.output.0"]
    assert row.golden is not None
    told = compared(row, row.golden)
    assert set(told) <= set(EXPLANATIONS)
    assert (told["Result"], told["Counterpart"]) == ("origin", f"{WRONG}.output.0")
    assert in_one_line(told).startswith("origin, Deviation 0.00")


def test_a_call_is_told_with_its_verdict_and_its_line() -> None:
    topology = faulty()
    number = number_of(topology, WRONG)
    told = dict(about(topology.graphs[0].nodes[number], topology.graphs[0].judged[number]))
    assert told["verdict"] == "origin: the error begins here"
    assert told["called at"] == "File net.py, line 1, in construct,"
    assert (told["class or operation"], told["paired by"]) == ("LayerNorm", "name")


def test_texts_can_be_written_however_long_they_are() -> None:
    assert as_text("\ud800") == "\\ud800"
    assert len(as_text("x" * 100_000)) < 3000
