"""JSON objects read in blocks: the same values as the standard library's, whatever the size of a block."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msprobe_ms.dump.reading import json_stream
from msprobe_ms.dump.reading.json_stream import members
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.support.errors import DamagedFileError, DumpFormatError
from msprobe_ms.support.translation import speaking, translated

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=4), VALUES, max_size=6)


@pytest.fixture(params=[1, 7, 1 << 20])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(json_stream, "_BLOCK", request.param)
    return int(request.param)


def read(path: Path, text: str, opened: str | None = None) -> dict[str, Any]:
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    found: dict[str, Any] = {}
    for holder, key, value in members(path, opened):
        (found[holder] if holder else found)[key] = value
    return found


@pytest.mark.parametrize("indent", [None, 1, "\t"])
def test_members_are_those_of_the_whole(tmp_path: Path, block: int, indent: int | str | None) -> None:
    @given(OBJECTS, OBJECTS, st.booleans())
    def check(envelope: dict[str, Any], data: dict[str, Any], ascii_only: bool) -> None:
        whole = {**envelope, "data": data}
        text = json.dumps(whole, indent=indent, ensure_ascii=ascii_only)
        expected = json.loads(text.encode("utf-8", "replace"))
        for opened in ("data", None):
            assert json.dumps(read(tmp_path / "a.json", text, opened)) == json.dumps(expected) or "\\ud" in text

    check()


def test_numbers_of_the_format_and_numbers_cut_by_a_block(tmp_path: Path, block: int) -> None:
    text = '{"a": NaN, "b": -Infinity, "c": 123456789.25e3, "d": 17, "e": {"f": 1' + "0" * 50 + "}}"
    found = read(tmp_path / "a.json", text, "e")
    assert math.isnan(found["a"])
    assert (found["b"], found["c"], found["d"], found["e"]["f"]) == (-math.inf, 123456789.25e3, 17, 10**50)


def test_an_empty_object_and_one_that_is_none(tmp_path: Path, block: int) -> None:
    assert read(tmp_path / "a.json", " { } ") == {}
    assert read(tmp_path / "a.json", '{"data": {}, "x": 1}', "data") == {"data": {}, "x": 1}
    assert read(tmp_path / "a.json", '{"data": [1], "x": 1}', "data") == {"data": [1], "x": 1}
    for text, complaint in (
        ("", "empty: the dumping process ended before it was written"),
        ("[1]", "holds a list; accepted is an object"),
        ("{1: 2}", "line 1, column 2: expected a double quote"),
        ('{"a" 2}', "line 1, column 6: expected a colon"),
        ('{"a": 2', "line 1, column 8: expected a comma or a closing brace"),
        ('{"a": 2,\n "b": }', "line 2, column 7: expected a value"),
        ('{"a": "x', "line 1, column 7: the text that begins here has no end"),
    ):
        with pytest.raises(DamagedFileError) as caught:
            read(tmp_path / "a.json", text)
        assert complaint in str(caught.value)


def test_a_number_that_may_have_been_cut_is_no_value(tmp_path: Path, block: int) -> None:
    for number in ("12", "-1.5", "1.", "1e-", "NaN", "tru"):
        path = tmp_path / "a.json"
        path.write_text('{"a": 1, "b": ' + number)
        found = []
        with pytest.raises(DamagedFileError):
            found.extend(members(path))
        assert [key for _, key, _ in found] in (["a"], [])
    path.write_text("12")
    with pytest.raises(DamagedFileError, match="holds a number; accepted is an object"):
        list(members(path))


def test_what_follows_the_object_is_damage(tmp_path: Path, block: int) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": 1}\n \t')
    assert [key for _, key, _ in members(path)] == ["a"]
    path.write_text('{"a": 1}\n{"b": 2}')
    with pytest.raises(DamagedFileError, match=r"line 2, column 1: expected the end of the file"):
        list(members(path))


def test_the_place_of_damage_is_that_in_the_file(tmp_path: Path, block: int) -> None:
    @given(st.lists(st.sampled_from((", ", "é", "\n ", "\n", "\ud800", "𝄞", "x" * 9)), max_size=30), st.booleans())
    def check(parts: list[str], marked: bool) -> None:
        before = '{"a": 1,' + "".join(" " if part != "\n" else part for part in parts)
        before += json.dumps("".join(parts), ensure_ascii=False) + ":"
        with pytest.raises(DamagedFileError) as caught:
            read(tmp_path / "a.json", ("\ufeff" if marked else "") + before + "}")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        assert f"line {line}, column {column}: expected a value" in str(caught.value)

    check()


def test_text_that_is_no_unicode_names_its_place(tmp_path: Path, block: int) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'{"a": 1,\n "b": "\xff"}')
    with pytest.raises(DamagedFileError, match=r"not valid JSON: line [12], column"):
        list(members(path))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DumpFormatError, match="cannot be read: No such file or directory"):
        list(members(tmp_path / "none.json"))


LEAF = {"type": "mindspore.Tensor", "dtype": "Float32", "shape": [2], "Max": 1.0, "Min": 0.0, "Mean": 0.5, "Norm": 1.0}


def test_of_a_dump_that_was_cut_off_the_entries_before_are_read(
    tmp_path: Path, block: int, caplog: pytest.LogCaptureFixture
) -> None:
    entries = {f"Functional.relu.{number}.forward": {"output": [LEAF]} for number in range(5)}
    text = json.dumps({"task": "statistics", "level": "L1", "framework": "mindspore", "data": entries}, indent=1)
    path = tmp_path / "dump.json"
    path.write_text(text[: text.index("relu.3") + 40])
    dump = read_dump(path)
    assert list(dump.entries) == list(entries)[:3]
    assert dump.entries["Functional.relu.2.forward"].items[0].mean == 0.5
    assert "the 3 entries before it are read" in dump.damage
    assert dump.damage in caplog.text
    path.write_text(text)
    assert read_dump(path).damage == ""


def test_the_level_may_stand_behind_the_entries(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"task": "tensor", "data": {"loss.0": [LEAF]}, "level": "debug"}))
    assert [item.name for item in read_dump(path).entries["loss.0"].items] == ["loss.0.0"]


def test_what_is_wrong_is_told_in_chinese(tmp_path: Path) -> None:
    with speaking("zh"), pytest.raises(DamagedFileError) as caught:
        read(tmp_path / "a.json", "{1: 2}")
    with speaking("zh"):
        assert translated(caught.value).endswith("不是有效的 JSON：第 1 行第 2 列：此处应为双引号")
