"""Colours of every report: rows of spreadsheets, and verdicts in notebooks and terminals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from msprobe_ms.comparison.terms import RowColour, Standing, Verdict

#: RGB of the rows of our own tables.
OWN_ROWS: Mapping[RowColour, str] = MappingProxyType({RowColour.RED: "FF9C9C", RowColour.YELLOW: "FFEB9C"})
#: RGB of the rows of tables that look as those of msprobe do.
MSPROBE_ROWS: Mapping[RowColour, str] = MappingProxyType({RowColour.RED: "FF0000", RowColour.YELLOW: "FFFF00"})

#: Colour of a call in other viewers; those of msprobe's own graphs, where it has one.
STANDINGS: Mapping[Standing, str] = MappingProxyType(
    {
        Standing.ORIGIN: "#FF704D",
        Standing.INHERITED: "#FFDC7F",
        Standing.AGREES: "#FFFCF3",
        Standing.NOT_COMPARED: "#E6E6E6",
        Standing.UNMATCHED: "#C7C7C7",
    }
)

#: Background of a verdict in HTML; legible on a light and on a dark page.
VERDICTS: Mapping[Verdict, str] = MappingProxyType(
    {
        Verdict.CONSISTENT: "#2e7d3233",
        Verdict.DIVERGENT: "#c6282833",
        Verdict.INCOMPLETE: "#f9a82533",
        Verdict.FAILED: "#f9a82533",
    }
)
#: Colour of a verdict in a terminal, by its number (SGR).
TERMINAL: Mapping[Verdict, int] = MappingProxyType(
    {Verdict.CONSISTENT: 32, Verdict.DIVERGENT: 31, Verdict.INCOMPLETE: 33, Verdict.FAILED: 33}
)
#: A verdict at the beginning of a line, or after the step and rank that it is of.
_VERDICT = re.compile(
    r"^((?:[\w-]+ ?){0,3}(?:: )?)(?:(DIVERGENT)|(NOT COMPARED|INCOMPLETE|CONSISTENT[^:\n]* INCOMPLETE)|(CONSISTENT))\b",
    re.MULTILINE,
)
_OF_GROUP = (Verdict.DIVERGENT, Verdict.INCOMPLETE, Verdict.CONSISTENT)


def paint_verdicts(text: str) -> str:
    """Colour the verdicts in lines for a terminal.

    >>> paint_verdicts("step0 rank1: DIVERGENT: the error begins at")
    'step0 rank1: \\x1b[1;31mDIVERGENT\\x1b[0m: the error begins at'
    """
    return _VERDICT.sub(_painted, text)


def _painted(found: re.Match[str]) -> str:
    place, *words = found.groups()
    word, verdict = next((word, verdict) for word, verdict in zip(words, _OF_GROUP, strict=True) if word)
    return f"{place}\x1b[1;{TERMINAL[verdict]}m{word}\x1b[0m"
