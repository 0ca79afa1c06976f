"""Docstrings as reStructuredText wants them: two columns, as they are written for terminals, are a definition list."""

from __future__ import annotations

import re

#: A name in the left column, at least two spaces, and the beginning of what is said of it.
_ROW = re.compile(r"(``.+?``(?:, ``.+?``)*) {2,}(\S.*)")
_CONTINUED = re.compile(r" {3,}(\S.*)")


def columns_as_definitions(lines: list[str]) -> list[str]:
    """Return the lines with each row of two columns as a term, and below it, indented, what is said of it."""
    written: list[str] = []
    in_row = False
    for line in lines:
        if row := _ROW.fullmatch(line):
            written += [row[1], f"    {row[2]}"]
            in_row = True
        elif in_row and (continued := _CONTINUED.fullmatch(line)):
            written.append(f"    {continued[1]}")
        else:
            in_row = False
            written.append(line)
    return written
