"""Colours of every report: rows of spreadsheets, and verdicts in notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msprobe_ms.comparison.terms import RowColour, Verdict

#: RGB of the rows of our own tables.
OWN_ROWS: Mapping[RowColour, str] = MappingProxyType({RowColour.RED: "FF9C9C", RowColour.YELLOW: "FFEB9C"})
#: RGB of the rows of tables that look as those of msprobe do.
MSPROBE_ROWS: Mapping[RowColour, str] = MappingProxyType({RowColour.RED: "FF0000", RowColour.YELLOW: "FFFF00"})

#: Background of a verdict in HTML; legible on a light and on a dark page.
VERDICTS: Mapping[Verdict, str] = MappingProxyType(
    {
        Verdict.CONSISTENT: "#2e7d3233",
        Verdict.DIVERGENT: "#c6282833",
        Verdict.INCOMPLETE: "#f9a82533",
        Verdict.FAILED: "#f9a82533",
    }
)
