"""The last sheet of a table of our own: what its colours, results and columns mean, for who has the file alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msprobe_ms.comparison.terms import RowColour
from msprobe_ms.support.translation import tr

#: The name of the sheet; what reads tables passes it over.
LEGEND_SHEET = "Legend"


class LegendLine(NamedTuple):
    """A word of the table, what it means, and the colour of rows that bear it."""

    word: str
    meaning: str
    colour: RowColour = RowColour.NONE


_RESULTS = (
    LegendLine("origin", tr("the error begins here: the reason says why; look at this row first"), RowColour.RED),
    LegendLine("inherited", tr("beyond its tolerance; the error came from the origin named"), RowColour.YELLOW),
    LegendLine("differs", tr("beyond its tolerance, and no single call is to blame for it"), RowColour.YELLOW),
    LegendLine("agrees", tr("within its tolerance")),
    LegendLine("random", tr("random numbers differ, which is nobody's fault")),
    LegendLine("not judged", tr("its result is undefined or a copy, or later uses show that it was recorded wrongly")),
    LegendLine("not compared", tr("neither side has figures")),
    LegendLine("unmatched", tr("the golden has no such call, or its call no such value")),
)
_COLUMNS = (
    LegendLine("NPU …", tr("the target, the dump under suspicion (-tp), whatever device it ran on")),
    LegendLine("Bench …", tr("the golden, the dump to trust (-gp)")),
    LegendLine("Inherited From", tr("the origin whose error this row carries on; filter the first column by it")),
    LegendLine(
        "Explained By", tr("why a row beyond its tolerance is no origin of error; its value may be wrong all the same")
    ),
    LegendLine("Deviation", tr("how far the two are apart, relative to the tensor's own size; 0 is equal")),
    LegendLine("Tolerance", tr("how far they may be apart; a deviation up to it passes")),
    LegendLine("MaxRelativeErr", tr("|difference / golden|, as a share: 0.1 is 10 %")),
    LegendLine("Call Site", tr("the lines of the script that made the call, innermost first")),
)


def own_legend(titles: Sequence[str]) -> Iterator[LegendLine]:
    """Yield the lines for a table of the profile ``own`` with these titles."""
    yield from _RESULTS
    yield from (each for each in _COLUMNS if each.word.endswith("…") or each.word in titles)
    yield LegendLine("further columns", tr("docs/compare_columns.md says what they mean"))
