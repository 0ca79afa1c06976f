"""The page of many ranks and steps: which of them differ, where it began, and what each node does over the steps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from msprobe_ms.comparison.many.run import Found
from msprobe_ms.comparison.many.trend import Trend, growing
from msprobe_ms.comparison.page.verdict import headline, made_by, provenance_html
from msprobe_ms.comparison.reporting.files import writing
from msprobe_ms.comparison.terms import Verdict
from msprobe_ms.page.columns import Columns, floats, rounded
from msprobe_ms.page.template import escaped, write_page
from msprobe_ms.support.translation import tr, translated

#: Pairs in the static table; the script shows all.
_MOST = 200
_SENTENCE = 2_000
#: Bytes of a trend: 0 is no error ratio, 255 one that has no size, and between them equal steps of its logarithm.
_LEAST, _LARGEST, _STEPS = -4.0, 8.0, 253
#: Bits of the fraction of a figure: it is told in two digits.
_BITS = 8
#: Verdicts that there is nothing to say of.
_CALM = frozenset((str(Verdict.CONSISTENT), "finite"))


class PairTold(NamedTuple):
    """What the page tells of one pair, or of one dump; ``page`` is the name of its own.

    ``verdict``  a ``Verdict``; of a dump ``finite`` or ``not finite``
    ``differing``  how many values differ in a pair that is consistent: what explains them is no error of their own
    """

    step: int | None
    rank: str
    verdict: str
    origin: str = ""
    reason: str = ""
    handed_by: str = ""
    page: str = ""
    differing: int = 0


def pair_told(found: Found, rank: str, *, paths: bool = True) -> PairTold:
    """Return what the page tells of a pair that was compared, or could not be; with ``paths`` also of which file."""
    first = found.origins[0] if found.origins else None
    page = next((file.name for file in found.files if file.suffix == ".html"), "")
    return PairTold(
        found.place.step, rank, found.verdict,
        origin=found.exchanges.origin or (first.target if first else ""),
        reason=(found.problem if paths else "") or (first.reason if first else _without_origin(found)),
        handed_by=found.exchanges.handed_by,
        page=page,
        differing=found.differing,
    )  # fmt: skip


def _without_origin(found: Found) -> str:
    if found.inherits is not None:
        return tr("it inherits the error of step {step}", step=found.inherits)
    return found.without_origin


class TrendColumns:
    """The trends of ranks as columns of a page, node by node."""

    def __init__(self) -> None:
        self.columns = Columns()
        self.described: list[dict[str, object]] = []

    def add(self, trend: Trend) -> None:
        """Add the error ratios of a rank's nodes, a byte for each node and step."""
        numbers, _ = _matrix(trend)
        grows = [each.node for each in growing(trend)]
        self._add(trend, {"error ratio": quantised(numbers)}, grows)

    def add_figures(self, trends: Mapping[str, Trend]) -> None:
        """Add figures of the same nodes, by what they are."""
        told = {title: floats(*_matrix(trend)) for title, trend in trends.items()}
        self._add(next(iter(trends.values())), {title: rounded(each, _BITS) for title, each in told.items()}, [])

    def _add(self, trend: Trend, measures: Mapping[str, npt.NDArray[Any]], grows: Sequence[str]) -> None:
        number = len(self.described)
        names = f"trend_names_{number}"
        self.columns.add_json(names, [node for node, _ in trend.rows])
        described = []
        for place, (title, matrix) in enumerate(measures.items()):
            column = f"trend_{number}_{place}"
            self.columns.add(column, matrix.reshape(-1))
            described.append({"title": title, "column": column})
        self.described.append(
            {"rank": trend.rank, "steps": list(trend.steps), "names": names, "measures": described, "growing": grows}
        )


def _matrix(trend: Trend) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """The numbers of a trend, a row a node, and where there are none."""
    numbers = np.array([[math.nan if each is None else each for each in row] for _, row in trend.rows], float)
    return numbers, np.array([[each is None for each in row] for _, row in trend.rows], np.bool_)


def quantised(ratios: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
    """Return error ratios as bytes: 0 for none and for NaN, 255 for infinity, else steps from 10⁻⁴ to 10⁸."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (np.clip(np.log10(ratios), _LEAST, _LARGEST) - _LEAST) / (_LARGEST - _LEAST)
    steps = np.where(ratios > 0, 1 + np.round(_STEPS * np.nan_to_num(share)), 0)
    steps[np.isposinf(ratios)] = 255
    return steps.astype(np.uint8)


def write_many(
    path: Path,
    told: Sequence[str],
    pairs: Sequence[PairTold],
    verdict: str,
    trends: TrendColumns,
    of: Literal["comparisons", "dumps"] = "comparisons",
) -> None:
    """Write the page; ``told``: the verdict over all in words.

    :raises UsageError: it cannot be written
    """
    about = [(tr(of), str(len(pairs))), (tr("made by"), made_by())]
    title = translated(told[0] if told else verdict.upper())
    index = {
        "format": 1,
        "kind": "ranks",
        "of": of,
        "title": title,
        "verdict": str(verdict),
        "pairs": [
            {**each._asdict(), "verdict": str(each.verdict), "reason": translated(each.reason)} for each in pairs
        ],
        "trends": trends.described,
        "provenance": [tuple(map(translated, each)) for each in about],
    }
    with writing(path) as file:
        write_page(
            file, title=title, header="\n".join(_header(told, pairs, verdict, of)), provenance=provenance_html(about),
            index=index, columns=trends.columns,
        )  # fmt: skip


def _header(told: Sequence[str], pairs: Sequence[PairTold], verdict: str, of: str) -> Iterator[str]:
    first, *others = told
    yield f'<header id="verdict" class="{verdict}">'
    yield headline(first)
    yield "".join(f'<p class="reason">{escaped(translated(line).strip(), _SENTENCE)}</p>' for line in others)
    titles = (
        (tr("verdict"), tr("the error begins at"))
        if of == "comparisons"
        else (tr("values"), tr("the first not finite"))
    )
    heads = "".join(f"<th>{escaped(title)}</th>" for title in ("step", "rank", *titles, tr("why")))
    yield f"<table><thead><tr>{heads}</tr></thead><tbody>"
    shown = [each for each in pairs if each.verdict not in _CALM or each.differing] or list(pairs)
    yield from map(_table_row, shown[:_MOST])
    yield "</tbody></table>"
    if len(shown) > _MOST:
        yield f"<p>{escaped(tr('and {count} more', count=len(shown) - _MOST))}</p>"
    yield "</header>"


def _table_row(pair: PairTold) -> str:
    verdict = escaped(pair.verdict)
    link = f'<a href="./{escaped(quote(pair.page))}">{verdict}</a>' if pair.page else verdict
    why = tr("received through {handed_by}", handed_by=pair.handed_by) if pair.handed_by else pair.reason
    cells = (escaped("" if pair.step is None else str(pair.step)), escaped(pair.rank), link,
             f"<bdi>{escaped(pair.origin).replace('.', '.<wbr>')}</bdi>", escaped(why, _SENTENCE))  # fmt: skip
    return f'<tr class="{verdict}">{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'
