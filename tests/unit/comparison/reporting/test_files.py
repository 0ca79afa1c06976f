"""The files a comparison writes: whole, readable by strict readers, harmless in a spreadsheet, none over another."""

from __future__ import annotations

import csv
import io
import json
import os
import struct
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest
from compare_parts import dump, judged, side_by_side, tensor, value
from hypothesis import example, given
from hypothesis import strategies as st
from rank_dumps import write_run

from msprobe_ms.arrays.metrics import Missing
from msprobe_ms.cli.main import main
from msprobe_ms.comparison.measuring.measure import measure
from msprobe_ms.comparison.model import Comparison, Origin, Pair, Row
from msprobe_ms.comparison.pairing.shares import shares_of
from msprobe_ms.comparison.reporting import csv_table
from msprobe_ms.comparison.reporting.advisor import write_advice
from msprobe_ms.comparison.reporting.csv_table import CodedCells, listed, looks_like_formula, write_columns, write_csv
from msprobe_ms.comparison.reporting.files import claimed_timestamp, write_summary, write_tables
from msprobe_ms.comparison.reporting.profiles import PROFILES, judge
from msprobe_ms.support.errors import UsageError

STAMP = "20260102030405"
LATEST = PROFILES["latest"]


def compared(*pairs: Pair, profile: str = "latest") -> Comparison:
    comparison = Comparison("statistics", list(pairs), shares=shares_of(pairs))
    measure(comparison.pairs, dump([]), dump([]), "statistics")
    judge(comparison, PROFILES[profile])
    return judged(comparison)


def one_pair(target: float = 2.0, name: str = "Functional.op.0.forward") -> Pair:
    inputs = tensor("input.0", [1.0], name)
    return side_by_side((inputs, inputs), (tensor("output.0", [target], name), tensor("output.0", [1.0], name)))


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_files_are_named_by_time_and_suffix(tmp_path: Path) -> None:
    comparison = compared(one_pair())
    out = tmp_path / "made" / "for_it"
    written = [
        *write_tables(comparison, LATEST, out, STAMP),
        *write_tables(comparison, LATEST, out, STAMP, csv=True, name_suffix="_rank0"),
        write_summary(comparison, out, STAMP),
        write_advice(comparison, out, STAMP, "_rank0"),
    ]
    assert [path.name for path in written] == [
        f"compare_result_{STAMP}.xlsx",
        f"compare_result_rank0_{STAMP}.csv",
        f"compare_summary_{STAMP}.json",
        f"advisor_rank0_{STAMP}.txt",
    ]
    assert sorted(os.listdir(out)) == sorted(path.name for path in written), "nothing else is left behind"


@pytest.mark.parametrize("profile", ["v110", "latest", "own"])
def test_csv_and_xlsx_hold_the_same(tmp_path: Path, profile: str) -> None:
    comparison = compared(one_pair(), one_pair(np.nan, "Functional.op.1.forward"), profile=profile)
    chosen = PROFILES[profile]
    (sheet,) = write_tables(comparison, chosen, tmp_path, STAMP, stack=True)
    (text,) = write_tables(comparison, chosen, tmp_path, STAMP, stack=True, csv=True)
    with text.open(encoding="utf-8", newline="") as file:
        plain = list(csv.reader(file))
    cells = [[cell.value for cell in row] for row in openpyxl.load_workbook(sheet).worksheets[0].iter_rows()]
    assert plain[0] == cells[0] == [column.title for column in chosen.columns("statistics", stack=True)]
    assert len(plain) == len(cells) == 5
    for left, right in zip(plain[1:], cells[1:], strict=True):
        for one, other in zip(left, right, strict=True):
            assert one == ("" if other is None else str(other)) or float(one) == float(other)


def test_numbers_stay_numbers_to_the_last_digit(tmp_path: Path) -> None:
    comparison = compared(one_pair(0.1 + 0.2))
    (text,) = write_tables(comparison, LATEST, tmp_path, STAMP, csv=True)
    assert float(read_csv(text)[1]["NPU max"]) == 0.1 + 0.2
    (sheet,) = write_tables(comparison, LATEST, tmp_path, STAMP)
    rows = list(openpyxl.load_workbook(sheet).worksheets[0].values)
    assert rows[2][rows[0].index("NPU max")] == pytest.approx(0.3, rel=1e-15)


def test_rows_are_coloured_by_result(tmp_path: Path) -> None:
    comparison = compared(one_pair(2.0), one_pair(1.01, "Functional.op.1.forward"))
    (path,) = write_tables(comparison, LATEST, tmp_path, STAMP)
    sheet = openpyxl.load_workbook(path).worksheets[0]
    assert sheet.freeze_panes == "B2"
    assert sheet.auto_filter.ref is not None
    colours = [{cell.fill.fgColor.rgb if cell.fill.fill_type else "" for cell in row} for row in sheet.iter_rows()]
    assert colours == [{""}, {""}, {"FFFF0000"}, {""}, {"FFFFFF00"}]


FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "%x", "＝1+1", "\t=1", "a;=HYPERLINK(1)", "\r=1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_text_that_looks_like_a_formula_is_inert_and_never_fatal(tmp_path: Path, text: str) -> None:
    item = value("input.0", text)
    comparison = compared(side_by_side((item, item)))
    (sheet,) = write_tables(comparison, LATEST, tmp_path, STAMP)
    rows = list(openpyxl.load_workbook(sheet).worksheets[0].iter_rows())
    cell = rows[1][[head.value for head in rows[0]].index("NPU max")]
    assert cell.data_type in ("s", "inlineStr"), "text, not a formula"
    assert cell.value.replace("_x000D_", "\r") == text
    (plain,) = write_tables(comparison, LATEST, tmp_path, STAMP, csv=True)
    assert read_csv(plain)[0]["NPU max"] == (text.replace(";", ";'") if ";" in text else "'" + text)


def test_markup_in_a_text_stays_text(tmp_path: Path) -> None:
    texts = ["<r><t>hidden</t></r>", "<r>", "<r><v>1</v></c></row></r>", "</r>"]
    for text in texts:
        item = value("input.0", text)
        (sheet,) = write_tables(compared(side_by_side((item, item))), LATEST, tmp_path, STAMP)
        heads, row = openpyxl.load_workbook(sheet).worksheets[0].iter_rows(values_only=True)
        assert str(row[heads.index("NPU max")]).strip() == text


@pytest.mark.parametrize("text", ["-1", "-1.5e-3", "+inf", "-inf", " inf", "-50.0%", "", "a=b", "none", "a;b", "-1;-2"])
def test_numbers_and_plain_text_are_no_formulas(text: str) -> None:
    assert not looks_like_formula(text)


def test_unusual_names_are_never_fatal(tmp_path: Path) -> None:
    names = ["=1+1.0.forward", "a\x00b\x1f", "\ud800", "x" * 40_000, "名前", "<&>"]
    pairs = [one_pair(name=name) for name in names]
    comparison = compared(*pairs)
    (sheet,) = write_tables(comparison, LATEST, tmp_path, STAMP)
    assert openpyxl.load_workbook(sheet).worksheets[0].max_row == 1 + 2 * len(names)
    (plain,) = write_tables(comparison, LATEST, tmp_path, STAMP, csv=True)
    limit = csv.field_size_limit(1_000_000)
    assert len(read_csv(plain)) == 2 * len(names)
    csv.field_size_limit(limit)
    comparison.origins.append(Origin("\ud800", "名前", "output", "because", {}))
    assert json.loads(write_summary(comparison, tmp_path, STAMP).read_text())["origins"][0]["golden"] == "名前"


@given(st.text(max_size=30))
@example(";%")
@example("=1;2;+x")
def test_any_text_survives_csv(text: str) -> None:
    """What a csv reader gets back is the text, or the text with apostrophes before what could be run."""
    item = value("input.0", text)
    with tempfile.TemporaryDirectory() as folder:
        (plain,) = write_tables(compared(side_by_side((item, item))), LATEST, Path(folder), STAMP, csv=True)
        found = read_csv(plain)[0]["NPU max"]
    assert found.replace("'", "") == text.replace("'", "")
    assert found == text or looks_like_formula(text)
    assert not looks_like_formula(found)


def strict(text: str) -> Any:
    def refuse(token: str) -> None:
        raise AssertionError(f"{token} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_summary_is_strict_json_and_counts_rows(tmp_path: Path) -> None:
    alone = side_by_side((tensor("input.0", [1.0]), None), (tensor("output.0", [1.0]), None))
    lonely = side_by_side((None, tensor("input.0", [1.0])))
    comparison = compared(one_pair(), alone, lonely)
    figures = {"deviation": float("inf"), "cosine": float("nan"), "low": -float("inf"), "why": Missing.SHAPE, "x": 0.5}
    comparison.origins.append(
        Origin("a.output.0", "b.output.0", "output", "its inputs agree", figures, "outside", float("inf"))
    )
    assert strict(write_summary(judged(comparison), tmp_path, STAMP).read_text()) == {
        "mode": "statistics",
        "verdict": "divergent",
        "inherits": None,
        "matched": 2,
        "unmatched_target": 2,
        "unmatched_golden": 1,
        "not_compared": 0,
        "damage": [],
        "ends": [],
        "origins": [
            {
                "target": "a.output.0",
                "golden": "b.output.0",
                "state": "output",
                "kind": "outside",
                "stage": None,
                "reason": "its inputs agree",
                "details": [],
                "required_tolerance": "inf",
                "metrics": {"deviation": "inf", "cosine": "nan", "low": "-inf", "why": "shape differs", "x": 0.5},
            }
        ],
        "random_operations": [],
        "said_unmatched": [],
        "fused": [],
        "paired_modules": None,
        "paired_calls": [1, 2],
        "unmatched_modules": {"target": [], "golden": []},
        "compared_by_outputs": {"target": [], "golden": []},
        "unmatched_values": {"target": {"Functional.op": 2}, "golden": {"Functional.op": 1}},
        "explained": [],
        "pairs": [{"target": "Functional.op", "golden": "Functional.op", "how": "name", "calls": 1}],
        "proposed_mapping": [],
        "files": [],
    }


def test_summary_of_consistent_dumps(tmp_path: Path) -> None:
    found = strict(write_summary(compared(one_pair(1.0)), tmp_path, STAMP).read_text())
    assert (found["verdict"], found["origins"]) == ("consistent", [])


def test_a_report_that_fails_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    comparison = compared(one_pair())
    comparison.pairs[0].rows[1] = Row("no item", None, state="output")  # type: ignore[arg-type]
    for as_csv in (True, False):
        with pytest.raises(AttributeError):
            write_tables(comparison, LATEST, tmp_path, STAMP, csv=as_csv)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    comparison = compared(one_pair())
    for write in (write_summary, write_advice):
        with pytest.raises(UsageError, match=r"the report cannot be written: .*accepted is a writable folder"):
            write(comparison, file / "below", STAMP)
    with pytest.raises(UsageError, match=str(file)):
        write_tables(comparison, LATEST, file / "below", STAMP)


CELLS = st.one_of(st.floats(), st.none(), st.booleans(), st.integers(), st.text(max_size=5))


@given(st.integers(2, 4).flatmap(lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1)))
def test_a_csv_reader_gets_every_cell_of_a_table_back(rows: list[list[Any]]) -> None:
    titles = [f"column {place}" for place in range(len(rows[0]))]
    file = io.BytesIO()
    write_csv(file, titles, rows)
    header, *found = csv.reader(io.StringIO(file.getvalue().decode(), newline=""))
    assert header == titles and len(found) == len(rows)
    for texts, cells in zip(found, rows, strict=True):
        for text, cell in zip(texts, cells, strict=True):
            if isinstance(cell, float):
                assert struct.pack("d", float(text)) == struct.pack("d", cell) or cell != cell
            elif isinstance(cell, str):
                assert text.replace("'", "") == cell.encode("utf-8", "backslashreplace").decode().replace("'", "")
            else:
                assert text == ("" if cell is None else str(cell))


@pytest.mark.parametrize("most", [1, 1 << 62])
def test_cells_that_repeat_are_written_as_if_each_were_given(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(csv_table, "_MOST_CODES", most)

    @given(st.lists(st.lists(CELLS, min_size=1, max_size=3), min_size=1, max_size=4), st.data())
    def check(values: list[list[Any]], data: st.DataObject) -> None:
        lines = data.draw(st.integers(1, 5))
        places = [data.draw(st.lists(st.integers(0, len(each) - 1), min_size=lines, max_size=lines)) for each in values]
        coded = [CodedCells(np.array(each), known) for each, known in zip(places, values, strict=True)]
        plain = [[known[place] for place in each] for each, known in zip(places, values, strict=True)]
        assert [listed(column) for column in coded] == plain or any(cell != cell for column in plain for cell in column)
        files = io.BytesIO(), io.BytesIO()
        for file, columns in zip(files, ([plain[0], *coded, plain[0]], [plain[0], *plain, plain[0]]), strict=True):
            write_columns(file, ["title"] * len(columns), [columns])
        written, expected = (list(csv.reader(io.StringIO(file.getvalue().decode(), newline=""))) for file in files)
        assert [[_as_number(text) for text in line] for line in written] == [
            [_as_number(text) for text in line] for line in expected
        ]

    check()


def _as_number(text: str) -> str:
    """A float's text may be one of two that are read as the same."""
    try:
        return repr(float(text))
    except ValueError:
        return text


def test_two_at_once_have_two_moments(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with claimed_timestamp(out) as first, claimed_timestamp(out) as second, claimed_timestamp(out, "node_") as other:
        assert len({first, second}) == 2
        assert other <= second
    assert not out.exists()


def test_a_moment_that_a_report_bears_is_not_given_again(tmp_path: Path) -> None:
    with claimed_timestamp(tmp_path) as first:
        (tmp_path / f"compare_summary_{first}.json").touch()
    with claimed_timestamp(tmp_path) as second:
        assert second > first
    assert [path.name for path in tmp_path.iterdir()] == [f"compare_summary_{first}.json"]


def test_a_folder_that_cannot_be_made_is_left_to_those_who_write(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with claimed_timestamp(tmp_path / "file/out") as stamp:
        assert stamp[:8] == time.strftime("%Y%m%d")


def test_four_commands_at_once_write_four_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, out = write_run(tmp_path / "good", ranks=1), tmp_path / "out"
    command = ["compare", "-tp", str(good), "-gp", str(good), "-o", str(out), "--csv"]
    threads = [threading.Thread(target=main, args=(command,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(out.glob("compare_result_*.csv"))) == len(list(out.glob("compare_summary_*.json"))) == 4
    assert not list(out.glob(".*"))
