"""Verdicts are coloured in a terminal, and nothing else is."""

from __future__ import annotations

import re

import pytest

from msprobe_ms.comparison.reporting.colours import paint_verdicts

RED, YELLOW, GREEN = 31, 33, 32


@pytest.mark.parametrize(
    ("line", "word", "colour"),
    [
        ("DIVERGENT: the error begins at", "DIVERGENT", RED),
        ("step0 rank1: DIVERGENT, inherits the error of step 0", "DIVERGENT", RED),
        ("graph step0 rank1: CONSISTENT", "CONSISTENT", GREEN),
        ("INCOMPLETE: nothing could be compared", "INCOMPLETE", YELLOW),
        ("INCOMPLETE: what was compared agrees, but map", "INCOMPLETE", YELLOW),
        ("step0 rank1: NOT COMPARED: no such file", "NOT COMPARED", YELLOW),
        ("CONSISTENT: 9 pairs of dumps: 9 consistent", "CONSISTENT", GREEN),
    ],
)
def test_a_verdict_has_its_colour(line: str, word: str, colour: int) -> None:
    painted = paint_verdicts(f"  Cell.a.Dense.forward.0\n{line}\n    called at File train.py")
    assert painted.splitlines()[1] == line.replace(word, f"\x1b[1;{colour}m{word}\x1b[0m", 1)
    assert re.sub(r"\x1b\[[\d;]+m", "", painted).splitlines()[1] == line
    assert painted.count("\x1b") == 2


def test_names_of_a_dump_are_not_coloured() -> None:
    text = "  Cell.DIVERGENT.Dense.forward.0\n    its DIVERGENT neighbour: DIVERGENT"
    assert paint_verdicts(text) == text
