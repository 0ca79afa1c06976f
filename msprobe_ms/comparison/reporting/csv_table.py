"""Write csv tables in which text that looks like a formula is made inert: no spreadsheet program will run it.

It is written as the csv module would, block by block and column by column: that module looks at every character of
every number, and a report has millions of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import BinaryIO

import orjson

#: What a cell can hold; None is a blank cell.
Cell = str | float | int | bool | None

#: Lines whose cells become text at once.
_BLOCK = 512
#: What a spreadsheet program may take for the beginning of a formula, full-width counterparts included (docs/format.md,
#: "Formulas in tables").
_FORMULA_STARTS = frozenset("=+-%@＝＋－％＠\t\r\n")
#: What makes a csv reader need quotes around a text.
_TO_QUOTE = re.compile(r'[",\r\n]')
#: Texts that need quotes, or may be taken for a formula; all others are written as they are.
_NOT_PLAIN = re.compile(f"""[",;\\r\\n]|^[{re.escape("".join(_FORMULA_STARTS))}]""")

#: What the lines of a text hold when any of them is not written as it is; ends of lines apart.
_MARKS = ('"', ",", ";", "\r", *(f"\n{start}" for start in sorted(_FORMULA_STARTS - {"\n"})))


def figure_cell(value: float | None) -> Cell:
    """Return a figure as a cell: what is not finite, which no spreadsheet holds, as the text nan, inf or -inf."""
    return value if value is None or math.isfinite(value) else str(value)


def write_csv(file: BinaryIO, titles: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Write a table as UTF-8 csv; text like a formula gets a leading apostrophe, which spreadsheets show as text.

    Numbers are the shortest decimals that give the same double; all rows are as long as ``titles``.
    """
    file.write(_lines([titles]))
    left = iter(rows)
    while block := list(islice(left, _BLOCK)):
        file.write(_lines(block))


def looks_like_formula(text: str) -> bool:
    """Return whether a spreadsheet could run ``text``: a formula's first character, also after a ``;``, no number."""
    if text[:1] not in _FORMULA_STARTS and ";" not in text:
        return False
    return any(map(_is_formula, text.split(";")))


def without_guard(text: str) -> str:
    """Return a text as it was before it was written as csv, where what looks like a formula got an apostrophe."""
    return text[1:] if text.startswith("'") and looks_like_formula(text[1:]) else text


def _lines(rows: Sequence[Sequence[Cell]]) -> bytes:
    columns = map(_texts, zip(*rows, strict=True))
    lines = [*map(",".join, zip(*columns, strict=True)), ""]
    return "\r\n".join(lines).encode("utf-8", "backslashreplace")


def _texts(cells: Sequence[Cell]) -> Iterable[str]:
    """The cells of a column as they stand in the file."""
    kinds = set(map(type, cells))
    if kinds == {str}:
        if _are_plain(cells):  # type: ignore[arg-type]
            return cells  # type: ignore[return-value]
        texts = {cell: _text(cell) for cell in set(cells)}  # type: ignore[arg-type]
        return map(texts.__getitem__, cells)
    if kinds == {float}:
        return _numbers(cells)  # type: ignore[arg-type]
    if kinds == {type(None)}:
        return [""] * len(cells)
    floats = [cell for cell in cells if type(cell) is float]
    numbers = _numbers(floats)
    return [next(numbers) if type(cell) is float else _other(cell) for cell in cells]


def _are_plain(cells: Sequence[str]) -> bool:
    """Whether all of many texts are written as they are."""
    lines = "\n".join(("", *cells))
    return lines.count("\n") == len(cells) and not any(mark in lines for mark in _MARKS)


def _numbers(floats: Sequence[float]) -> Iterator[str]:
    """The shortest texts of many numbers, in a tenth of ``repr``'s time."""
    texts = orjson.dumps(floats)[1:-1].decode()
    if "null" not in texts:
        return iter(texts.split(","))
    return map(repr, floats)  # what is not finite JSON does not know


def _other(cell: Cell) -> str:
    return _text(cell) if isinstance(cell, str) else "" if cell is None else str(cell)


def _text(cell: str) -> str:
    if _NOT_PLAIN.search(cell) is None:
        return cell
    cell = _inert(cell)
    return '"' + cell.replace('"', '""') + '"' if _TO_QUOTE.search(cell) else cell


def _inert(cell: str) -> str:
    """The text made harmless: no spreadsheet program may take it, or a part behind a ``;``, for a formula."""
    if cell[:1] not in _FORMULA_STARTS and ";" not in cell:
        return cell
    return ";".join("'" + part if _is_formula(part) else part for part in cell.split(";"))


def _is_formula(part: str) -> bool:
    return part[:1] in _FORMULA_STARTS and not _is_number(part)


def _is_number(text: str) -> bool:
    try:
        float(text.removesuffix("%"))
    except ValueError:
        return False
    return True
