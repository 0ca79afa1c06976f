"""A comparison of two environments as a page, errors first. It reads without a script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msprobe_ms.comparison.reporting.files import writing
from msprobe_ms.environment.compare import ConfigRow, Status, section_title
from msprobe_ms.environment.settings import shown
from msprobe_ms.page.filtered import ASSETS, Group, filter_controls, filtered_table, status_word
from msprobe_ms.page.template import escaped, write_static_page
from msprobe_ms.support.translation import tr, tr_beginning, tr_join

#: What comes first.
_ORDER = (Status.ERROR, Status.WARNING, Status.PASS)
#: Rows that are shown; more stand in the table.
_MOST = 20_000
_HEADINGS = (tr("Name"), tr("Section"), tr("Result"), tr("Target"), tr("Golden"), tr("Note"))


def write_environments_page(path: Path, rows: Sequence[ConfigRow], sides: tuple[Path, Path], verdict: str) -> None:
    """Write the page. ``sides``: the collections of target and golden; ``verdict``: the first line for the terminal.

    :raises UsageError: it cannot be written
    """
    ordered = sorted(rows, key=lambda row: _ORDER.index(row.status))
    counts = Counter(row.status for row in rows)
    body = [
        f"<h1>{escaped(verdict, 2000)}</h1>",
        *filter_controls({status.value: counts[status] for status in _ORDER}),
        *filtered_table(map(_row, ordered[:_MOST]), _HEADINGS, tr("Rows"), tr("{shown} of {all} rows")),
        *_footer(sides, len(rows)),
    ]
    with writing(path) as file:
        title = tr(
            "{verdict}: {target}, {golden}",
            verdict=tr_beginning(verdict),
            target=sides[0].name,
            golden=sides[1].name,
        )
        write_static_page(file, title=title, body="\n".join(body), assets=ASSETS)


def _row(row: ConfigRow) -> Group:
    cells = (
        f'<tr><th scope="row">{escaped(row.name)}</th><td>{escaped(section_title(row.section))}</td>'
        f'<td class="{row.status.value}">{escaped(status_word(row.status.value))}</td>'
        f'<td class="value">{escaped(_value(row.target))}</td><td class="value">{escaped(_value(row.golden))}</td>'
        f"<td>{escaped(row.note)}</td></tr>"
    )
    return Group(row.status.value, f"{row.name} {row.section} {_value(row.target)} {_value(row.golden)}", cells)


def _value(value: Any) -> str:
    """A setting as it was collected, or the figures of a tensor; nothing where a side has none."""
    if isinstance(value, dict):
        told = {tr(name): _figure(figure) for name, figure in value.items() if figure is not None}
        return tr_join(", ", (tr("{name} {figure}", name=name, figure=figure) for name, figure in told.items()))
    return "" if value is None else shown(value)


def _figure(figure: Any) -> str:
    return f"{figure:.7g}" if isinstance(figure, float) else str(figure)


def _footer(sides: tuple[Path, Path], count: int) -> Iterator[str]:
    yield "<footer>"
    if count > _MOST:
        first = tr(
            "The first {most} of {count} rows; the table beside this page has them all.", most=_MOST, count=count
        )
        yield f"<p>{escaped(first)}</p>"
    target, golden = sides
    paths = tr("Target: {target}. Golden: {golden}.", target=target, golden=golden)
    about = tr(
        "An error is a difference that changes results, a warning one that may. This file holds versions, variables "
        "and settings of both sides."
    )
    yield f"<p>{escaped(paths, 4000)} {escaped(about)}</p></footer>"
