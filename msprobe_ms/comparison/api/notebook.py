"""Show a comparison in a notebook: a small table of HTML, in which every text is escaped, and frames of pandas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from io import BytesIO
from types import ModuleType

from msprobe_ms.comparison.many.run import Found
from msprobe_ms.comparison.model import Comparison, Origin, Outcome
from msprobe_ms.comparison.reporting.colours import VERDICTS
from msprobe_ms.comparison.reporting.facts import pairing_line
from msprobe_ms.comparison.terms import Verdict
from msprobe_ms.support.text import printable
from msprobe_ms.support.translation import tr, translated

#: Lines of a table; the rest is counted.
_MOST = 20
#: Notebooks may be dark, and align cells at their right.
_TEXT = "color:#111"
_CELL = "text-align:left;vertical-align:top"
#: Texts from so many characters on may be broken anywhere: names of modules have no spaces.
_LONG = 24
_FRAME = "width:100%;height:720px;border:1px solid #8888;margin-top:6px"


def comparison_html(outcome: Outcome) -> str:
    """Return the verdict and the origins as HTML that needs no script, and the page of what matters in a frame.

    The frame is sandboxed: its script reaches neither the notebook nor its cookies.
    """
    from msprobe_ms.comparison.page.choice import findings  # here, as few comparisons are shown in a notebook
    from msprobe_ms.comparison.page.report import write_content

    page = BytesIO()
    write_content(page, outcome, findings(outcome.comparison))
    shown = escape(page.getvalue().decode())
    frame = f'<iframe sandbox="allow-scripts" loading="lazy" style="{_FRAME}" srcdoc="{shown}"></iframe>'
    return f"{_static(outcome.comparison)}{frame}"


def _static(comparison: Comparison) -> str:
    rows = [_origin_row(origin) for origin in comparison.origins]
    titles = ("origin", "golden", "why", "deviation", "tolerance")
    return _page(comparison.verdict, [pairing_line(comparison)], titles, rows)


def ranks_html(found: Sequence[Found], told: Sequence[str]) -> str:
    rows = []
    for each in found:
        if each.verdict != Verdict.CONSISTENT:
            first = each.origins[0] if each.origins else None
            why = each.problem or (first.reason if first else "")
            row = (str(each.place), each.verdict, each.exchanges.origin, why, each.exchanges.handed_by)
            rows.append((row, VERDICTS[each.verdict]))
    verdict, _, text = told[0].partition(": ")
    return _page(Verdict(verdict.lower()), [text, *told[1:]], ("pair", "verdict", "origin", "why", "handed by"), rows)


def _origin_row(origin: Origin) -> tuple[Sequence[str], str]:
    numbers = [_number(origin.metrics.get(name)) for name in ("deviation", "tolerance")]
    return (origin.target, origin.golden, origin.reason, *numbers), VERDICTS[Verdict.DIVERGENT]


def _number(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str("" if value is None else value)


def _page(
    verdict: Verdict, texts: Iterable[str], titles: Sequence[str], rows: Sequence[tuple[Sequence[str], str]]
) -> str:
    told = "".join(f"<div>{escape(printable(text))}</div>" for text in texts)
    style = f"background:{VERDICTS[verdict]};{_TEXT};padding:2px 6px"
    head = f'<div style="{style}"><b>{escape(verdict.upper())}</b>{told}</div>'
    if not rows:
        return head
    cells = "".join(f'<th style="{_CELL}">{escape(title)}</th>' for title in titles)
    body = "".join(
        f'<tr style="background:{colour};{_TEXT}">{"".join(map(_cell, row))}</tr>' for row, colour in rows[:_MOST]
    )
    more = f"<div>and {len(rows) - _MOST} more</div>" if len(rows) > _MOST else ""
    return f"{head}<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(text: str) -> str:
    style = _CELL if len(text) < _LONG else f"{_CELL};overflow-wrap:anywhere"
    return f'<td style="{style}">{escape(printable(text))}</td>'


def imported_pandas() -> ModuleType:
    """The package; raises ModuleNotFoundError naming the extra that brings it."""
    try:
        import pandas
    except ModuleNotFoundError as error:
        if error.name != "pandas":
            raise
        raise ModuleNotFoundError(
            translated(
                tr(
                    'pandas is not installed, and .frame needs it: pip install "msprobe-ms[dataframe]"; with '
                    'MindSpore "msprobe-ms[mindspore,dataframe]", which keeps the numpy that it needs'
                )
            ),
            name="pandas",
        ) from None
    return pandas
