"""The section of a pre-check in a configuration file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msprobe_ms.accuracy.config_file import read_section
from msprobe_ms.support.errors import ConfigError


@pytest.mark.parametrize("name", ["run_ut", "acc_check"])
def test_the_section_of_either_generation(tmp_path: Path, name: str) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"task": "statistics", name: {"white_list": ["conv2d"], "black_list": ["mul"]}}))
    section = read_section(file)
    assert (section.white_list, section.black_list, section.precision) == (["conv2d"], ["mul"], 14)


def test_a_file_without_a_section_has_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"task": "statistics"}))
    assert read_section(file).white_list == []


def test_a_yaml_file_is_the_section(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("white_list: [add]\nprecision: 10\n")
    assert read_section(file).precision == 10


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"run_ut": {"whitelist": []}}', 'whitelist is no key of a pre-check (did you mean "white_list"?)'),
        ('{"run_ut": {"precision": 21}}', "precision: is 21; input should be less than or equal to 20"),
        ('{"run_ut": {"white_list": "add"}}', 'white_list: is "add"; input should be a valid list'),
        ("[]", "accepted is an object with a section acc_check or run_ut"),
        ("{", "cannot be read|neither JSON nor YAML|not yaml"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "config.json"
    file.write_text(content)
    with pytest.raises(ConfigError) as caught:
        read_section(file)
    assert str(file) in str(caught.value)
    assert any(each in str(caught.value) for each in said.split("|"))
