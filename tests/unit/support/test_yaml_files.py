"""Yaml files of users: every text survives being written; what cannot be read is told in words."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from msprobe_ms.support.yaml_files import FASTEST_LOADER, UnreadableError, not_yaml, quoted, read_text


@given(st.text(st.characters(exclude_categories=["Cs"])))
@example("\x00\x07\x7f\x85\xa0\u2028\ufeff\uffff\U0001f600\U000e0001")
@example('a: "b" \\ # c\n\t')
def test_every_text_is_read_as_it_was_written(text: str) -> None:
    for loader in (FASTEST_LOADER, yaml.SafeLoader):
        assert yaml.load(f"- {quoted(text)} # a note", Loader=loader) == [text]  # noqa: S506 - both are safe


def test_what_can_be_printed_stands_as_it_is() -> None:
    assert quoted("层.é 1") == '"层.é 1"'
    assert quoted("\ud83d") == '"\\ufffd"'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "names.yaml"
    path.write_bytes("层: b\n".encode(encoding))
    assert read_text(path, 100) == "层: b\n"


def test_no_more_is_read_than_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "names.yaml"
    path.write_bytes(b"a" * 2**20)
    assert len(read_text(path, 2**20)) == 2**20
    path.write_bytes(b"a" * (2**20 + 1))
    with pytest.raises(UnreadableError, match="larger than 1 MiB, the most that is read"):
        read_text(path, 2**20)


@pytest.mark.parametrize("loader", [FASTEST_LOADER, yaml.SafeLoader])
def test_the_place_of_a_mistake(loader: type[yaml.SafeLoader]) -> None:
    with pytest.raises(yaml.YAMLError) as caught:
        yaml.load("a: b\n c: d\n", Loader=loader)  # noqa: S506 - both are safe
    assert not_yaml(caught.value).startswith("line 2, column 3: this is not yaml: mapping values are not allowed ")
