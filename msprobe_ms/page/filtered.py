"""A table whose rows a reader filters by words and by status. Without the page's script it shows all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msprobe_ms.page.template import escaped

#: The name of their style and script.
ASSETS = "check"


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that are shown and hidden together.

    ``status`` is a class of the style; ``about`` holds the words by which it is found; ``rows`` is HTML.
    """

    status: str
    about: str
    rows: str


def filter_controls(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield what filters the table. ``counts``: how many groups have each status, the gravest first."""
    yield '<form id="controls" hidden><label>Filter <input type="search" id="filter" autocomplete="off"></label>'
    yield '<fieldset id="statuses"><legend>Show</legend>'
    for status, count in counts.items():
        yield (
            f'<label><input type="checkbox" value="{status}" checked> '
            f'<span class="{status}">{status}</span> ({count})</label>'
        )
    yield '</fieldset><output id="shown" aria-live="polite"></output></form>'


def filtered_table(groups: Iterable[Group], headings: Sequence[str], unit: str) -> Iterator[str]:
    """Yield the table. ``unit``: what a group is called, in the plural."""
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="{unit.capitalize()}">'
    yield f'<table id="filtered" data-unit="{unit}"><thead><tr>'
    yield "".join(f'<th scope="col">{heading}</th>' for heading in headings) + "</tr></thead>"
    for group in groups:
        yield f'<tbody data-status="{group.status}" data-about="{escaped(group.about.lower())}">{group.rows}</tbody>'
    yield "</table></div>"
