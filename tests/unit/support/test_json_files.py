"""Whatever is wrong with a file of JSON is one error that names the file and what is accepted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.json_files import read_object


def test_an_object_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": [1, null]}')
    assert read_object(tmp_path / "a.json", 100, "so") == {"a": [1, None]}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"\xff\xfe\xfa", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"[]", "holds a list, no object"),
        (b"null", "holds a NoneType, no object"),
        (b" " * 200_001, "has more than 200000 bytes"),
    ],
    ids=range(7),
)
def test_what_is_no_object_is_said(tmp_path: Path, content: bytes, says: str) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=f"a.json: {says}.*; accepted is so"):
        read_object(file, 200_000, "accepted is so")


def test_what_cannot_be_opened_is_said(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "nowhere", "."):
        with pytest.raises(UsageError, match=r"cannot be read: .*; accepted"):
            read_object(tmp_path / name, 10, "accepted")
