"""``msprobe config``: a clean file, and what its keys mean beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msprobe_ms.cli.main import main
from msprobe_ms.config import load_config
from msprobe_ms.config.sample_files import samples


def test_what_is_printed_is_a_file_and_the_meaning_of_keys_is_told_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "overflow"]) == 0
    printed = capsys.readouterr()
    (tmp_path / "config.json").write_text(printed.out)
    assert load_config(tmp_path / "config.json").task == "overflow_check"
    told = printed.err.splitlines()
    assert told[0] == "overflow_check_L1: where the first infinity or NaN is; cost: high, little on disk"
    assert "  overflow_nums  entries to record before recording ends; -1 is all" in told


def test_a_file_is_written_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "config.json"
    assert main(["config", "tensors", "-o", str(file)]) == 0
    assert json.loads(file.read_text())["task"] == "tensor"
    assert main(["config", "gradients", "-o", str(file)]) == 2
    assert f"msprobe: config: {file} is there already" in capsys.readouterr().err
    assert json.loads(file.read_text())["task"] == "tensor"


def test_every_sample_is_listed_with_its_purpose(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--list"]) == 0
    listed = capsys.readouterr().out
    for found in samples().values():
        assert f"{found.purpose} (cost: {found.cost}) [{found.name}.json]" in listed


def test_a_purpose_that_is_none_has_its_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "gradiants"]) == 2
    assert "msprobe: config: 'gradiants' is no sample (did you mean \"gradients\"?)" in capsys.readouterr().err
    assert main(["config", "-o", "x"]) == 2
    assert "config: -o needs a PURPOSE" in capsys.readouterr().err
