"""Draws ``docs/img/verdict.svg``: what ``make demo`` ends with, in the terminal and in the table.

``make demo | python tools/verdict_picture.py > docs/img/verdict.svg``, in the folder of the project; openpyxl reads the
table that the demo left in ``demo_output``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

import openpyxl

#: Columns of the table that the picture shows, and rows before and behind the one where the error begins.
COLUMNS = ("NPU Name", "Bench Name", "Result", "Deviation", "Tolerance", "NormRelativeErr")
BEFORE, BEHIND = 2, 3

_LINE, _ROW = 19, 22
#: Width of a character of the table, in pixels.
_CHARACTER = 7.25
#: The same of the terminal.
_LETTER = 7.85
_LOUD = ("DIVERGENT", "  Cell.")


def main(printed: str, root: Path) -> None:
    text = [line.replace(f"{root}/", "") for line in last_comparison(printed.splitlines())]
    tables = sorted((root / "demo_output" / "faulty_report").glob("compare_result_*.xlsx"))
    rows, titles, fills = around_the_origin(tables[-1])
    top = 18 + _LINE * (len(text) + 1)
    widths = [round(max(map(len, cells)) * _CHARACTER) + 12 for cells in zip(COLUMNS, *rows, strict=True)]
    width = max(round(max(map(len, text)) * _LETTER) + 32, sum(widths) + 8)
    print(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
        f'height="{top + 40 + _ROW * (len(rows) + 1)}" font-family="ui-monospace, Menlo, Consolas, monospace" '
        'font-size="13">'
    )
    print(f'<rect x="0" y="0" width="{width}" height="{top}" rx="8" fill="#1e2430"/>')
    for number, line in enumerate(["$ make demo", *text]):
        colour = "#ff8f7a" if line.startswith(_LOUD) else "#d6deeb"
        print(f'<text x="16" y="{26 + _LINE * number}" fill="{colour}" xml:space="preserve">{escape(line)}</text>')
    print(
        f'<text x="4" y="{top + 24}" fill="#555" font-family="sans-serif">compare_result_….xlsx '
        f"({len(COLUMNS)} of its {titles} columns)</text>"
    )
    for number, (cells, fill) in enumerate(zip([COLUMNS, *rows], ["#eef1f6", *fills], strict=True)):
        print("\n".join(drawn(cells, widths, top + 34 + _ROW * number, fill, bold=not number)))
    print("</svg>")


def last_comparison(lines: Sequence[str]) -> Iterator[str]:
    """What the demo prints of its last net: the first loss, the verdict, and not which files were written."""
    titles = [number for number, line in enumerate(lines) if line.startswith("The ")]
    losses = 0
    for line in lines[titles[-1] :]:
        losses += line.startswith("  loss")
        if not line.startswith("report: ") and " [INFO] " not in line and (losses < 2 or "  loss" not in line):
            yield line


def around_the_origin(table: Path) -> tuple[list[list[str]], int, list[str]]:
    """The rows around the one where the error begins, as text; how many columns there are; colours of the rows."""
    head, *rows = openpyxl.load_workbook(table).worksheets[0].iter_rows()
    titles = [cell.value for cell in head]
    places = [titles.index(title) for title in COLUMNS]
    origin = next(number for number, row in enumerate(rows) if row[titles.index("Result")].value == "origin")
    shown = rows[origin - BEFORE : origin + BEHIND + 1]
    fills = [f"#{row[0].fill.fgColor.rgb[2:]}" if row[0].fill.fill_type else "#ffffff" for row in shown]
    return [[spoken(row[place].value) for place in places] for row in shown], len(titles), fills


def spoken(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, (int, float)) else str(value or "")


def drawn(cells: Iterable[str], widths: Iterable[int], top: int, fill: str, *, bold: bool) -> Iterator[str]:
    left = 4
    weight = ' font-weight="bold"' if bold else ""
    for cell, width in zip(cells, widths, strict=True):
        yield f'<rect x="{left}" y="{top}" width="{width}" height="{_ROW}" fill="{fill}" stroke="#c8ccd4"/>'
        yield f'<text x="{left + 5}" y="{top + 15}" fill="#111" font-size="12"{weight}>{escape(cell)}</text>'
        left += width


if __name__ == "__main__":
    main(sys.stdin.read(), Path.cwd())
