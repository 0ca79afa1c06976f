"""Columns of text on a terminal, where a Chinese character is two wide."""

from __future__ import annotations

from unicodedata import east_asian_width


def display_width(text: str) -> int:
    """Return how many columns of a terminal a text takes.

    >>> display_width("norm 范数")
    9
    """
    return len(text) if text.isascii() else sum(2 if east_asian_width(each) in "WF" else 1 for each in text)


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Fill a text with spaces up to a width; ``right``: before it."""
    spaces = " " * (width - display_width(text))
    return spaces + text if right else text + spaces
