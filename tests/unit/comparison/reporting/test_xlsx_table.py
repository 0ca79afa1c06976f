"""Spreadsheets: as many sheets as rows take, and what the disk refuses said in one sentence."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import openpyxl
import pytest

from msprobe_ms.comparison.reporting import xlsx_table
from msprobe_ms.comparison.reporting.files import write_table
from msprobe_ms.comparison.reporting.xlsx_table import ColouredRow, writable
from msprobe_ms.comparison.terms import RowColour
from msprobe_ms.support.errors import UsageError

COLOURS = {RowColour.RED: "FF0000"}


def rows(count: int) -> list[ColouredRow]:
    return [([f"row {number}", number, None], RowColour.RED) for number in range(count)]


def test_sheets_split_before_excel_s_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert xlsx_table.ROWS_A_SHEET == 1_048_500
    monkeypatch.setattr(xlsx_table, "ROWS_A_SHEET", 3)
    write_table(tmp_path / "a.xlsx", ["name", "number", "blank"], rows(8), COLOURS)
    sheets = openpyxl.load_workbook(tmp_path / "a.xlsx").worksheets
    assert [sheet.max_row for sheet in sheets] == [4, 4, 3]
    assert {sheet.cell(1, 1).value for sheet in sheets} == {"name"}
    assert [sheets[2].cell(3, place).value for place in (1, 2, 3)] == ["row 7", 7, None]


def test_a_full_disk_is_one_clear_error(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(UsageError, match=r"a\.xlsx: the report cannot be written: File too large; accepted is"):
            write_table(tmp_path / "a.xlsx", ["name", "number", "blank"], rows(1), COLOURS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.listdir(tmp_path) == []


def test_text_that_excel_would_refuse_is_written_as_near_as_it_takes() -> None:
    assert writable("<r>no markup</r>") == " <r>no markup</r>"
    assert writable("half \ud800") == "half \\ud800"
    assert len(writable("x" * 40_000)) == 32_767
