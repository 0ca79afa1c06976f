"""A pre-check as a page to look at: each call with its results, what is wrong first. It reads without a script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from msprobe_ms.accuracy.judging.findings import ALLOWED, EXCESS, ULP
from msprobe_ms.accuracy.judging.model import ApiResult, Judged, Status
from msprobe_ms.comparison.reporting.files import writing
from msprobe_ms.page.filtered import ASSETS, Group, filter_controls, filtered_table, status_word
from msprobe_ms.page.template import escaped, write_static_page
from msprobe_ms.support.translation import tr, tr_beginning

#: What comes first.
_ORDER = (Status.ERROR, Status.WARNING, Status.PASS, Status.SKIP)
#: Calls that are shown; more stand in the table.
_MOST = 20_000
_HEADINGS = (
    tr("Call"), tr("Forward"), tr("Backward"), tr("Standard"), tr("Error in ULP"), tr("Allowed"), tr("Rule"),
    tr("Reference"), tr("Message"),
)  # fmt: skip
#: Standards as they are told.
_STANDARDS = {
    "absolute": tr("absolute"),
    "binary": tr("binary"),
    "ulp": tr("ulp"),
    "thousandth": tr("thousandth"),
    "benchmark": tr("benchmark"),
}


def write_check_page(path: Path, dump: Path | None, results: Sequence[ApiResult], verdict: str) -> None:
    """Write the page. ``verdict`` is the first line for the terminal. ``dump``: None of calls within a training.

    :raises UsageError: it cannot be written
    """
    ordered = sorted(results, key=lambda result: _ORDER.index(_worst(result)))
    body = "\n".join(
        [
            *_header(verdict, results),
            *filtered_table(map(_call, ordered[:_MOST]), _HEADINGS, tr("Calls"), tr("{shown} of {all} calls")),
            *_footer(dump, len(ordered)),
        ]
    )
    with writing(path) as file:
        title = tr(
            "{verdict}: {dump}",
            verdict=tr_beginning(verdict),
            dump=tr("training") if dump is None else dump.parent.name,
        )
        write_static_page(file, title=title, body=body, assets=ASSETS)


def _worst(result: ApiResult) -> Status:
    """The gravest status of a call: a direction that was not checked is told after those that were."""
    return min((each for each in (result.forward, result.backward) if each is not None), key=_ORDER.index,
               default=Status.SKIP)  # fmt: skip


def _header(verdict: str, results: Sequence[ApiResult]) -> Iterator[str]:
    yield f"<h1>{escaped(verdict, 2000)}</h1>"
    counts = Counter(_worst(result) for result in results)
    yield from filter_controls({status.value: counts[status] for status in _ORDER})


def _call(result: ApiResult) -> Group:
    about = " ".join([result.name, *{row.standard for row in result.details}, result.message])
    first = (
        f'<tr><th scope="row">{escaped(result.name)}</th>{_status(result.forward)}{_status(result.backward)}'
        f'<td colspan="5"></td><td>{escaped(result.message)}</td></tr>'
    )
    return Group(_worst(result).value, about, "\n".join([first, *map(_output, result.details)]))


def _output(row: Judged) -> str:
    name = row.name.split(".", 2)[-1] if row.name.count(".") > 2 else row.name
    place = next((name[name.index(word):] for word in ("forward.", "backward.") if word in name), name)  # fmt: skip
    cells = (
        f"<td>{escaped(place)}</td>",
        _status(row.status if place.startswith("forward") else None),
        _status(row.status if place.startswith("backward") else None),
        f"<td>{escaped(_STANDARDS.get(row.standard, row.standard))}</td>",
        f'<td class="figure">{_figure(row, ULP)}</td>',
        f'<td class="figure">{_figure(row, ALLOWED)}</td>',
        f"<td>{escaped(row.rule)}</td>",
        f"<td>{escaped(row.reference)}</td>",
        f"<td>{escaped(row.message)}</td>",
    )
    return f'<tr class="output" data-excess="{_figure(row, EXCESS)}">{"".join(cells)}</tr>'


def _status(status: Status | None) -> str:
    return "<td></td>" if status is None else f'<td class="{status.value}">{escaped(status_word(status.value))}</td>'


def _figure(row: Judged, key: str) -> str:
    value = row.figures.get(key)
    return "" if value is None else f"{value:.4g}"


def _footer(dump: Path | None, count: int) -> Iterator[str]:
    yield "<footer>"
    if count > _MOST:
        first = tr("The first {most} of {count} calls; the csv tables have them all.", most=_MOST, count=count)
        yield f"<p>{escaped(first)}</p>"
    source = tr("Sampled within a training.") if dump is None else tr("Dump: {path}.", path=dump)
    held = tr("This file holds names of functions and figures of their results.")
    yield f"<p>{escaped(source, 2000)} {escaped(held)}</p>"
    yield "</footer>"
