"""Text from files and programs as a terminal, a log or a text file may show it: the one place that makes it so.

Names in a dump are whatever its writer chose. A terminal obeys control characters (colours, titles, the cursor, even
its answerback), a log takes a line's end for the end of a record, and marks that turn the direction of text show a
name as another one. Each such character is shown as its escape (``\\x1b``, ``\\u202e``); what is printable, in any
script, stays.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence

from msprobe_ms.support.columns import display_width, padded
from msprobe_ms.support.translation import tr, tr_join, translated

#: Longest line that is shown whole, in characters as they are shown: no name that a person chose comes near it.
_LONGEST = 10_000
#: Between the members of a list.
_COMMA = tr(", ")
#: Before how many are left out of a list.
_AND = tr(" and ")
#: Longest value that is shown whole, in characters.
_LONGEST_SHOWN = 80


def printable(text: str) -> str:
    """Escape what is not printable in one line.

    >>> print(printable("fc\\x1b[31m.\\u202ecod\\n2"))
    fc\\x1b[31m.\\u202ecod\\n2
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)


def relative_to_size(share: float) -> str:
    """Say how large something is beside the tensor that it is a share of, or several times of."""
    return tr("{share:.3g} times its size", share=share) if share > 1 else tr("{share:.3g} of its size", share=share)


def printable_lines(text: str) -> str:
    """Escape as ``printable`` does, in a text of several lines."""
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


def for_terminal(text: str, further: str = "") -> str:
    """Escape for terminals and logs, messages in the language of the user: long lines are cut, all but the first begin
    with ``further``."""
    return f"\n{further}".join(map(_terminal_line, translated(text).split("\n")))


def one_a_line(lines: Iterable[str]) -> str:
    """Join lines for terminals, messages in the language of the user; a line's end inside of one is shown as any other
    control character."""
    return "\n".join(map(_terminal_line, map(translated, lines)))


def _terminal_line(line: str) -> str:
    shown = printable(line[:_LONGEST])  # an escape is up to ten characters long
    whole = len(line) <= _LONGEST and len(shown) <= _LONGEST
    return shown if whole else tr("{shown}… ({count} characters)", shown=shown[:_LONGEST], count=len(line))


def show(value: object) -> str:
    """Return a value as JSON has it, at most 80 characters, nothing in it that could break a line or a terminal."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, TypeError, RecursionError):  # an int of thousands of digits, odd keys of a dict argument, depth
        text = tr("a value of type {name}", name=type(value).__name__)
    text = printable(text)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


def show_path(path: object) -> str:
    """Return a path in quotes, whole: its end is what tells it from others."""
    return f'"{printable(str(path))}"'


def from_here(text: str) -> str:
    """Return a text in which paths below the current folder begin there, as a user types them."""
    try:
        here = os.getcwd().rstrip(os.sep)
    except OSError:  # it was removed
        return text
    if not here or here not in text:
        return text
    return re.sub(rf"(?<![A-Za-z0-9_.\-/\\]){re.escape(here)}{re.escape(os.sep)}(?=[^\s/])", "", text)


def suggestion(value: object, accepted: Iterable[str]) -> str:
    """Return `` (did you mean "output"?)`` for a near miss of what is accepted, else nothing."""
    by_lower = {name.lower(): name for name in accepted}
    near = difflib.get_close_matches(value.lower(), by_lower, n=1) if isinstance(value, str) else []
    return tr(' (did you mean "{meant}"?)', meant=by_lower[near[0]]) if near else ""


def listed(names: Iterable[object], most: int = 3, between: str = _COMMA, last: str = _AND) -> str:
    """Join the first ``most`` names; of more, say how many are left out.

    >>> listed(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    >>> listed(["a", "b"], most=1, last="; and ")
    'a; and 1 more'
    """
    texts = [each if isinstance(each, str) else str(each) for each in names]
    more = and_more(len(texts) - most, last)
    return tr_join("", [tr_join(between, texts[:most]), more]) if more else tr_join(between, texts[:most])


def counted(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> counted(1, "parameter"), counted(2, "parameter")
    ('1 parameter', '2 parameters')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def and_more(count: int, before: str = _AND) -> str:
    """Return `` and 2 more`` for what is left out of a list; nothing where nothing is."""
    return tr("{before}{count} more", before=before, count=count) if count > 0 else ""


def table_lines(rows: Iterable[Sequence[str]], *, right: bool = False) -> Iterator[str]:
    """Yield rows of as many cells each as lines in the language of the user, indented, columns below each other."""
    told = [[translated(cell) for cell in row] for row in rows]
    widths = [max(map(display_width, column)) for column in zip(*told, strict=True)]
    for row in told:
        cells = (padded(cell, width, right=right) for cell, width in zip(row, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()
