"""``--node`` shows a plain argument beside what the other framework calls otherwise, or leaves out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from softmax_dumps import softmax

from msprobe_ms.comparison.node.report import node_report
from msprobe_ms.comparison.run import Options
from msprobe_ms.support.text import one_a_line


@pytest.mark.parametrize(
    ("golden", "line"),
    [
        (({"dim": -1},), ["input.axis (golden: input.dim)", "int 1", "int -1", "DIFFERS"]),
        (({}, -1), ["input.axis (golden: input.1)", "int 1", "int -1", "DIFFERS"]),
        (({"dim": 1},), ["input.axis (golden: input.dim)", "int 1", "int 1", "0", "0", "agrees"]),
        (({"dim": -2},), ["input.axis (golden: input.dim)", "int 1", "int -2"]),
    ],
)
def test_an_argument_stands_beside_what_the_other_framework_calls_otherwise(
    golden: tuple[Any, ...], line: list[str], tmp_path: Path
) -> None:
    sides = softmax(tmp_path / "a", "mindspore", {"axis": 1}), softmax(tmp_path / "bb", "pytorch", *golden)
    lines = node_report(*sides, "Functional.softmax", Options()).lines
    told = [re.split(r"\s{2,}", each.strip()) for each in lines]
    assert [each for each in told if each[0].startswith("input.axis")] == [line], lines
    assert not any("no counterpart" in each for each in lines)
    named = "its argument axis is 1, the golden's is -1" in one_a_line(lines)
    assert named == ("DIFFERS" in line), "as compare names the cause"


def test_an_argument_that_one_side_leaves_out_stands_beside_its_default(tmp_path: Path) -> None:
    sides = softmax(tmp_path / "a", "pytorch", {"dim": 1}), softmax(tmp_path / "bb", "mindspore", {})
    lines = node_report(*sides, "Functional.softmax", Options()).lines
    told = [re.split(r"\s{2,}", each.strip()) for each in lines]
    assert ["input.dim", "int 1", "axis = -1 (default)", "DIFFERS"] in told, lines
