"""A table whose rows a reader filters by words and by status. Without the page's script it shows all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msprobe_ms.page.template import escaped
from msprobe_ms.support.translation import tr

#: The name of their style and script.
ASSETS = "check"


def status_word(status: str) -> str:
    """Return a status as a page tells it."""
    words = {"pass": tr("pass"), "warning": tr("warning"), "error": tr("error"), "SKIP": tr("SKIP")}
    return words[status]


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
    yield f'<form id="controls" hidden><label>{escaped(tr("Filter"))} '
    yield '<input type="search" id="filter" autocomplete="off"></label>'
    yield f'<fieldset id="statuses"><legend>{escaped(tr("Show"))}</legend>'
    for status, count in counts.items():
        yield (
            f'<label><input type="checkbox" value="{status}" checked> '
            f'<span class="{status}">{escaped(status_word(status))}</span> ({count})</label>'
        )
    yield '</fieldset><output id="shown" aria-live="polite"></output></form>'


def filtered_table(groups: Iterable[Group], headings: Sequence[str], label: str, shown: str) -> Iterator[str]:
    """Yield the table. ``label`` names it; ``shown`` says how many groups are: ``{shown} of {all} calls``."""
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="{escaped(label)}">'
    yield f'<table id="filtered" data-shown="{escaped(shown)}"><thead><tr>'
    yield "".join(f'<th scope="col">{escaped(heading)}</th>' for heading in headings) + "</tr></thead>"
    for group in groups:
        yield f'<tbody data-status="{group.status}" data-about="{escaped(group.about.lower())}">{group.rows}</tbody>'
    yield "</table></div>"
