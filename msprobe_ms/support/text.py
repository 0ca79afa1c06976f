"""Text from files and programs as a terminal, a log or a text file may show it: the one place that makes it so.

Names in a dump are whatever its writer chose. A terminal obeys control characters (colours, titles, the cursor, even
its answerback), a log takes a line's end for the end of a record, and marks that turn the direction of text show a
name as another one. Each such character is shown as its escape (``\\x1b``, ``\\u202e``); what is printable, in any
script, stays.
"""

from __future__ import annotations

from collections.abc import Iterable

#: Longest line that is shown whole, in characters: no name that a person chose comes near it.
_LONGEST = 10_000


def printable(text: str) -> str:
    """One line.

    >>> print(printable("fc\\x1b[31m.\\u202ecod\\n2"))
    fc\\x1b[31m.\\u202ecod\\n2
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)


def printable_lines(text: str) -> str:
    """As ``printable``, of a text of several lines."""
    return text if text.isprintable() else "\n".join(map(printable, text.split("\n")))


def told(text: str, further: str = "") -> str:
    """As ``printable_lines``, for terminals and logs: long lines are cut, all but the first begin with ``further``."""
    return f"\n{further}".join(map(_told_line, text.split("\n")))


def one_a_line(lines: Iterable[str]) -> str:
    """The lines as one text, for terminals; a line's end inside of one is shown as any other control character."""
    return "\n".join(map(_told_line, lines))


def _told_line(line: str) -> str:
    return printable(line if len(line) <= _LONGEST else f"{line[:_LONGEST]}… ({len(line)} characters)")
