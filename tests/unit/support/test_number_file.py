"""Numbers of a user's yaml file: read as people mean them, and each mistake told with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.number_file import NumberFile, is_empty, spoken


def node_of(folder: Path, text: str) -> tuple[NumberFile, yaml.Node]:
    path = folder / "numbers.yaml"
    path.write_text(f"# a comment\nkey: {text}\n")
    file = NumberFile(path)
    root = file.root()
    assert isinstance(root, yaml.MappingNode)
    return file, root.value[0][1]


@pytest.mark.parametrize(("text", "number"), [("1e-6", 1e-6), ("0", 0.0), ("2.5", 2.5)])
def test_numbers_are_what_people_mean(tmp_path: Path, text: str, number: float) -> None:
    file, node = node_of(tmp_path, text)
    assert file.number(node, "key") == number


@pytest.mark.parametrize("text", ["-1", "'1'", ".nan", "inf", "[1]", "{a: 1}", "x", ""])
def test_what_is_no_number_is_told_with_its_line(tmp_path: Path, text: str) -> None:
    file, node = node_of(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        file.number(node, "key", 2.0)
    assert str(caught.value) == (
        f"thresholds {file.path}: line 2: key: {spoken(node)}; accepted: a number of 0 or more (it is 2 by itself)"
    )


def test_an_empty_value_is_nothing(tmp_path: Path) -> None:
    _, node = node_of(tmp_path, "")
    assert is_empty(node) and spoken(node) == "nothing"


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        NumberFile(tmp_path / "none.yaml").root()
