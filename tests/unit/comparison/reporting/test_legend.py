"""The legend of our own table: every result that a row can have, in the colour that it has there."""

from __future__ import annotations

import re
from pathlib import Path

import openpyxl
import pytest
from compare_parts import dump, judged, side_by_side, tensor

from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.model import Comparison
from msprobe_ms.comparison.pairing.shares import shares_of
from msprobe_ms.comparison.reporting.colours import OWN_ROWS
from msprobe_ms.comparison.reporting.files import write_table, write_tables
from msprobe_ms.comparison.reporting.legend import LEGEND_SHEET
from msprobe_ms.comparison.reporting.profiles import PROFILES, judge
from msprobe_ms.comparison.reporting.xlsx_table import ColouredRow
from msprobe_ms.comparison.terms import RowColour

DOCUMENT = (Path(__file__).parents[4] / "docs" / "compare_columns.md").read_text(encoding="utf-8")


def compared(profile: str) -> Comparison:
    pairs = [side_by_side((tensor("output.0", [2.0]), tensor("output.0", [1.0])))]
    comparison = Comparison("statistics", pairs, shares=shares_of(pairs))
    measure(comparison.pairs, dump([]), dump([]), "statistics")
    judge(comparison, PROFILES[profile])
    return judged(comparison)


def test_the_legend_has_every_result_of_the_page_in_its_colour(tmp_path: Path) -> None:
    (path,) = write_tables(compared("own"), PROFILES["own"], tmp_path, "20240101000000", stack=True)
    book = openpyxl.load_workbook(path)
    assert book.sheetnames == ["Sheet1", LEGEND_SHEET] and book.active.title == "Sheet1"
    colours = {row[0].value: row[0].fill.fgColor.rgb[2:] for row in book[LEGEND_SHEET].iter_rows(min_row=2)}
    results = DOCUMENT.split("| Result | means |")[1].split("\n\n")[0]
    words = re.findall(r"^\| `([^`]+)` \|", results, re.MULTILINE)
    assert [word for word in colours if word in words] == words
    assert colours["origin"] == OWN_ROWS[RowColour.RED]
    assert colours["inherited"] == colours["differs"] == OWN_ROWS[RowColour.YELLOW]
    assert {"NPU …", "Deviation", "Call Site"} <= set(colours)


@pytest.mark.parametrize("profile", ["v110", "latest"])
def test_tables_like_those_of_msprobe_have_none(profile: str, tmp_path: Path) -> None:
    (path,) = write_tables(compared(profile), PROFILES[profile], tmp_path, "20240101000000")
    assert openpyxl.load_workbook(path).sheetnames == ["Sheet1"]


def test_a_table_opens_at_its_first_red_row(tmp_path: Path) -> None:
    rows: list[ColouredRow] = [(["agrees"], RowColour.NONE)] * 20
    rows += [(["origin"], RowColour.RED), (["inherited"], RowColour.YELLOW), (["origin"], RowColour.RED)]
    path = tmp_path / "table.xlsx"
    write_table(path, ["Result"], rows, OWN_ROWS)
    sheet = openpyxl.load_workbook(path).active
    assert sheet["A22"].value == "origin" and sheet.sheet_view.selection[-1].activeCell == "A22"
    pane = sheet.sheet_view.pane
    assert (pane.ySplit, pane.xSplit, pane.topLeftCell) == (1, 1, "B19")
    assert sheet["A1"].alignment.wrap_text


def test_a_table_without_one_opens_at_its_top(tmp_path: Path) -> None:
    write_table(tmp_path / "table.xlsx", ["Result"], [(["agrees"], RowColour.NONE)] * 20, OWN_ROWS)
    assert openpyxl.load_workbook(tmp_path / "table.xlsx").active.sheet_view.pane.topLeftCell == "B2"
