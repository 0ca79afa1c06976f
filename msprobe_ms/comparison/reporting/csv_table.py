"""Write csv tables in which text that looks like a formula is made inert: no spreadsheet program will run it.

It is written as the csv module would, block by block and column by column: that module looks at every character of
every number, and a report has millions of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import orjson

#: What a cell can hold; None is a blank cell.
Cell = str | float | int | bool | None


@dataclass(frozen=True, slots=True)
class CodedCells:
    """Cells that repeat: the ``values`` that there are, and the place of each line's among them."""

    codes: npt.NDArray[np.integer]
    values: Sequence[Cell]

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[Cell]:
        return map(self.values.__getitem__, self.codes.tolist())

    def __getitem__(self, line: int) -> Cell:
        return self.values[self.codes[line]]


#: The cells of a column; numbers that are all finite may come as an array.
Cells = Sequence[Cell] | npt.NDArray[np.float64] | CodedCells

#: Lines whose cells become text at once.
_BLOCK = 512
#: What a spreadsheet program may take for the beginning of a formula, full-width counterparts included (docs/format.md,
#: "Formulas in tables").
_FORMULA_STARTS = frozenset("=+-%@＝＋－％＠\t\r\n")
#: What makes a csv reader need quotes around a text.
_TO_QUOTE = re.compile(r'[",\r\n]')
#: Texts that need quotes, or may be taken for a formula; all others are written as they are.
_NOT_PLAIN = re.compile(f"""[",;\\r\\n]|^[{re.escape("".join(_FORMULA_STARTS))}]""")

#: What a text holds when it is not written as it is; formulas, ends of lines and commas apart.
_MARKS = ('"', ";", "\r")
#: Cells that are a text in the file.
_TEXT_OR_BLANK = (str, type(None))
#: Values of columns side by side that a number of 64 bits tells apart.
_MOST_CODES = 1 << 62
#: How often texts must occur in a block to be looked at one by one.
_OFTEN = 4


def figure_cell(value: float | None) -> Cell:
    """Return a figure as a cell: what is not finite, which no spreadsheet holds, as the text nan, inf or -inf."""
    return value if value is None or math.isfinite(value) else str(value)


def listed(cells: Cells) -> Sequence[Cell]:
    """Return cells one by one, which an array is not."""
    if isinstance(cells, CodedCells):
        return list(cells)
    return cells.tolist() if isinstance(cells, np.ndarray) else cells


def write_csv(file: BinaryIO, titles: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Write a table as UTF-8 csv; text like a formula gets a leading apostrophe, which spreadsheets show as text.

    Numbers are the shortest decimals that give the same double; all rows are as long as ``titles``.
    """
    left = iter(rows)
    blocks = iter(lambda: list(islice(left, _BLOCK)), [])
    write_columns(file, titles, (list(zip(*block, strict=True)) for block in blocks))


def write_columns(file: BinaryIO, titles: Sequence[str], blocks: Iterable[Sequence[Cells]]) -> None:
    """Write the same table from blocks of lines, each given as its columns, which are equally long."""
    file.write(_lines([[title] for title in titles]))
    for columns in blocks:
        file.write(_lines(columns))


def looks_like_formula(text: str) -> bool:
    """Return whether a spreadsheet could run ``text``: a formula's first character, also after a ``;``, no number."""
    if text[:1] not in _FORMULA_STARTS and ";" not in text:
        return False
    return any(map(_is_formula, text.split(";")))


def without_guard(text: str) -> str:
    """Return a text as it was before it was written as csv, where what looks like a formula got an apostrophe."""
    return text[1:] if text.startswith("'") and looks_like_formula(text[1:]) else text


def _lines(columns: Sequence[Cells]) -> bytes:
    lines = [*map(",".join, zip(*_texts_of_all(columns), strict=True)), ""]
    return "\r\n".join(lines).encode("utf-8", "backslashreplace")


def _texts_of_all(columns: Sequence[Cells]) -> Iterator[Iterable[str]]:
    """The cells of columns as they stand in the file; arrays side by side come as one, with its commas."""
    for kind, some in groupby(columns, type):
        if kind is np.ndarray:
            yield _numbers(np.stack([np.asarray(cells) for cells in some], axis=1))
        elif kind is CodedCells:
            yield from _of_codes(list(some))  # type: ignore[arg-type]
        else:
            yield from _of_lists(list(some))  # type: ignore[arg-type]


def _of_lists(columns: Sequence[Sequence[Cell]]) -> Iterator[Iterable[str]]:
    """The cells of columns one by one; those that are all equal to the ones before, as names may be, once."""
    before: Sequence[Cell] | None = None
    texts: Sequence[str] = ()
    for cells in columns:
        if before is None or cells != before:
            before, texts = cells, list(_texts(cells))
        yield texts


def _of_codes(columns: Sequence[CodedCells]) -> Iterator[Iterable[str]]:
    """The cells of columns side by side, with their commas: together they have few values."""
    codes, width, some = np.zeros(len(columns[0]), np.int64), 1, list[CodedCells]()
    for cells in columns:
        if some and width * len(cells.values) > _MOST_CODES:
            yield _joined(codes, some)
            codes, width, some = np.zeros(len(cells), np.int64), 1, []
        codes, width = codes * len(cells.values) + cells.codes, width * len(cells.values)
        some.append(cells)
    yield _joined(codes, some)


def _joined(codes: npt.NDArray[np.int64], columns: Sequence[CodedCells]) -> Iterable[str]:
    """``codes``: the places of the values of all columns, as the digits of one number."""
    texts = {}
    for code in np.unique(codes).tolist():
        cells, left = list[Cell](), code
        for column in reversed(columns):
            left, place = divmod(left, len(column.values))
            cells.append(column.values[place])
        texts[code] = ",".join(map(_other, reversed(cells)))
    return map(texts.__getitem__, codes.tolist())


def _numbers(lines: npt.NDArray[np.float64]) -> Iterable[str]:
    """The shortest texts of many numbers, a text a line, in a tenth of ``repr``'s time."""
    texts = orjson.dumps(lines, option=orjson.OPT_SERIALIZE_NUMPY)[2:-2].decode()
    if "null" not in texts:
        return texts.split("],[")
    return [",".join(map(repr, line)) for line in lines.tolist()]  # not finite: JSON has no such


def _texts(cells: Sequence[Cell]) -> Sequence[str]:
    """The cells of a column as they stand in the file."""
    if all(issubclass(kind, _TEXT_OR_BLANK) for kind in set(map(type, cells))):
        return _safe(cells)  # type: ignore[arg-type]
    floats = [cell for cell in cells if type(cell) is float]
    numbers = iter(_numbers(np.array(floats)[:, None]))
    return [next(numbers) if type(cell) is float else _other(cell) for cell in cells]


def _safe(cells: Sequence[str | None]) -> Sequence[str]:
    """Texts with the quotes that they need, and none that may be taken for a formula."""
    distinct = set(cells)
    if len(distinct) <= len(cells) // _OFTEN:
        return [*map({cell: _text(cell or "") for cell in distinct}.__getitem__, cells)]
    texts = [cell or "" for cell in cells]
    whole = "\n".join(texts)
    if any(map(whole.__contains__, _MARKS)) or whole.count("\n") >= len(texts) or _may_be_formulas(texts):
        return [*map(_text, texts)]
    return [f'"{text}"' if "," in text else text for text in texts] if "," in whole else texts


def _may_be_formulas(cells: Sequence[str]) -> bool:
    return not _FORMULA_STARTS.isdisjoint({cell[:1] for cell in cells})


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
