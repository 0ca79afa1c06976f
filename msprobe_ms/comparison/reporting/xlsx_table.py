"""Write tables as xlsx: rows with colours, a sheet behind the other where there are too many, and a legend."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

from msprobe_ms.comparison.reporting.csv_table import Cell
from msprobe_ms.comparison.reporting.legend import LEGEND_SHEET, LegendLine
from msprobe_ms.comparison.terms import RowColour
from msprobe_ms.support.translation import tr, translated

if TYPE_CHECKING:
    import xlsxwriter
    from xlsxwriter.format import Format
    from xlsxwriter.worksheet import Worksheet

#: The cells of a row, and its colour.
ColouredRow = tuple[list[Cell], RowColour]

#: Rows a sheet holds before the next begins; Excel's own limit is 1,048,576.
ROWS_A_SHEET = 1_048_500
#: Widths of columns that hold sentences or names, in characters.
_WIDTHS = {"Reason": 70, "Err_message": 50, "Inherited From": 40}
#: Rows that are shown above the one at which a sheet opens.
_ABOVE = 3
#: Excel's limit of characters in a cell.
_LONGEST_CELL = 32_767


def write_xlsx(
    file: BinaryIO,
    titles: Sequence[str],
    rows: Iterable[ColouredRow],
    colours: Mapping[RowColour, str],
    legend: Iterable[LegendLine],
) -> None:
    """Write rows, each with its colour, a key of ``colours`` or "", to a workbook; ``legend`` fills its last sheet.

    :raises OSError: the disk refuses it
    """
    with workbook(file) as book:
        formats = {colour: book.add_format({"bg_color": f"#{rgb}"}) for colour, rgb in colours.items()}
        header = book.add_format({"bold": True, "text_wrap": True, "valign": "top"})
        sheet, number, opened = _new_sheet(book, titles, header), 0, False
        for row, colour in rows:
            if number == ROWS_A_SHEET:
                _finish_sheet(sheet, number, len(titles))
                sheet, number, opened = _new_sheet(book, titles, header), 0, False
            number += 1
            if colour is RowColour.RED and not opened:
                opened = True
                _open_at(sheet, number)
            _write_row(sheet, number, row, formats.get(colour))
        _finish_sheet(sheet, number, len(titles))
        _write_legend(book, legend, formats, header)


@contextmanager
def workbook(file: BinaryIO) -> Iterator[xlsxwriter.Workbook]:
    """A workbook whose rows go to disk one by one; text is never read as formula, number or link. Raises OSError."""
    import xlsxwriter  # here, as a csv needs none of it
    from xlsxwriter.exceptions import FileCreateError

    outlet = _Outlet(file)
    try:
        with xlsxwriter.Workbook(outlet, {"constant_memory": True}) as book:
            yield book
    except FileCreateError as error:
        raise OSError(*getattr(error.args[0], "args", (str(error),))) from error
    finally:
        outlet.file = io.BytesIO()


class _Outlet:
    """Stands for a file before zipfile, which writes the end of an archive that failed once it is freed: in nothing."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def _new_sheet(book: xlsxwriter.Workbook, titles: Sequence[str], header: Format) -> Worksheet:
    sheet = book.add_worksheet()
    sheet.freeze_panes(1, 1)
    sheet.set_column(0, 1, 40)
    for place, title in enumerate(titles):
        sheet.write_string(0, place, title, header)
        if title in _WIDTHS:
            sheet.set_column(place, place, _WIDTHS[title])
    return sheet


def _write_legend(
    book: xlsxwriter.Workbook, legend: Iterable[LegendLine], formats: Mapping[RowColour, Format], header: Format
) -> None:
    if not (lines := list(legend)):
        return
    sheet = book.add_worksheet(LEGEND_SHEET)
    sheet.set_column(0, 0, 20)
    sheet.set_column(1, 1, 100)
    sheet.write_row(0, 0, (translated(tr("word")), translated(tr("meaning"))), header)
    for number, line in enumerate(lines, 1):
        _write_row(sheet, number, [line.word, translated(line.meaning)], formats.get(line.colour))


def _open_at(sheet: Worksheet, number: int) -> None:
    """Show this row first, as what is above it agrees or has no counterpart."""
    sheet.freeze_panes(1, 1, max(1, number - _ABOVE), 1)
    sheet.set_selection(number, 0, number, 0)


def _finish_sheet(sheet: Worksheet, rows: int, columns: int) -> None:
    sheet.autofilter(0, 0, rows, columns - 1)


def _write_row(sheet: Worksheet, number: int, row: list[Cell], colour: Format | None) -> None:
    for place, cell in enumerate(row):
        if type(cell) is float:  # first, as most cells are
            sheet.write_number(number, place, cell, colour)
        elif isinstance(cell, str):
            sheet.write_string(number, place, writable(cell), colour)
        elif isinstance(cell, bool):
            sheet.write_boolean(number, place, cell, colour)
        elif cell is not None:
            sheet.write_number(number, place, cell, colour)
        elif colour is not None:
            sheet.write_blank(number, place, None, colour)


def writable(text: str) -> str:
    """Return text that Excel takes as text: within its length, free of half characters and of markup of fonts."""
    if len(text) > _LONGEST_CELL:
        text = text[: _LONGEST_CELL - 1] + "…"
    if text[:3] == "<r>":
        text = " " + text  # what begins so, and ends with </r>, xlsxwriter would write unescaped
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
