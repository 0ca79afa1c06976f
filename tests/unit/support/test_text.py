"""Names reach terminals, logs and texts as escapes, never as what a terminal obeys or a reader mistakes."""

from __future__ import annotations

import io
import logging
import pickle
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.support.errors import DumpFormatError, MsprobeError
from msprobe_ms.support.log import logger
from msprobe_ms.support.text import for_terminal, one_a_line, printable, table_lines

#: Controls (C0, C1, DEL), formats (direction, zero width), line and paragraph separators, half characters.
OBEYED = ("Cc", "Cf", "Zl", "Zp", "Cs")


@given(st.text(st.characters(exclude_categories=())))
def test_nothing_obeyed_is_left(text: str) -> None:
    shown = printable(text)
    assert not any(unicodedata.category(each) in OBEYED for each in shown)
    assert shown == text or not text.isprintable()
    shown.encode()


def test_other_scripts_stay() -> None:
    assert printable("层.線形 µ é 🙂") == "层.線形 µ é 🙂"


def test_what_is_obeyed_is_shown() -> None:
    assert printable("a\x1b[31m\x9b\x7f\u202e\u2028\n\ud800") == r"a\x1b[31m\x9b\x7f\u202e\u2028\n\ud800"


def test_lines() -> None:
    assert for_terminal("a\x1b\nb", further="  ") == "a\\x1b\n  b"
    assert one_a_line(["a\nb", "c"]) == "a\\nb\nc"


def test_no_line_floods_a_terminal() -> None:
    shown = one_a_line(["a" * 1_000_000])
    assert shown == "a" * 10_000 + "… (1000000 characters)"


def test_what_is_escaped_is_cut_to_the_same_length() -> None:
    shown = one_a_line(["\U000e0001" * 2_000])
    assert shown == "\\U000e0001" * 1_000 + "… (2000 characters)"


def logged(message: str, *arguments: object) -> str:
    handler = next(each for each in logger.handlers if type(each).__module__.startswith("msprobe_ms"))
    stream = io.StringIO()
    assert isinstance(handler, logging.StreamHandler)
    before = handler.setStream(stream)
    try:
        logger.warning(message, *arguments)
    finally:
        handler.setStream(before)
    return stream.getvalue()


def test_no_name_forges_a_record() -> None:
    text = logged("%s is odd", "a\n2026-01-01 00:00:00 (1) [INFO] all is well\x1b[2J\u202e")
    assert len([line for line in text.splitlines() if re.match(r"\d{4}-\d\d-\d\d ", line)]) == 1
    assert all(line.isprintable() for line in text.rstrip("\n").split("\n"))


@pytest.mark.parametrize("kind", [MsprobeError, DumpFormatError])
def test_texts_of_errors(kind: type[MsprobeError]) -> None:
    error = kind("file: a\x1b[31m\u202e\n  accepted: b")
    assert str(error) == "file: a\\x1b[31m\\u202e\n  accepted: b"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_columns_are_below_each_other_in_either_language() -> None:
    rows = [("数据项", "偏差", ""), ("output.0", "0.5", "舍入误差")]
    assert list(table_lines(rows)) == ["  数据项    偏差", "  output.0  0.5   舍入误差"]
    assert list(table_lines([*rows[:1], ("x", "0.25", "")], right=True)) == ["  数据项  偏差", "       x  0.25"]


def test_a_log_names_what_is_below_the_current_folder_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = f"{tmp_path}_2/dump, /mnt{tmp_path}/x and {tmp_path}"
    message = f'{tmp_path}/dump/step0: see "{tmp_path}/dump/a log"，在{tmp_path}/x；beside {others}'
    assert message in logged(message)
    monkeypatch.chdir(tmp_path)
    assert logged(message).endswith(f'] dump/step0: see "dump/a log"，在x；beside {others}\n')
    (gone := tmp_path / "gone").mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert message in logged(message)
