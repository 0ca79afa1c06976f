"""What a shell script gives to a training."""

from __future__ import annotations

from pathlib import Path

import pytest

from msprobe_ms.environment.collect import collect, read_collection
from msprobe_ms.support.errors import UsageError


def test_variables_of_a_shell_script_are_filled_in_but_for_secrets(tmp_path: Path) -> None:
    script = 'LR=1e-4\nAPI_KEY=abc\nrun --lr $LR --wd ${WD:-0.1} --seed ${1} --header "x ${API_KEY}"'
    (tmp_path / "train.sh").write_text(script)
    assert collect([tmp_path / "train.sh"], None, {})["hyperparameters"] == {
        "LR": 1e-4, "API_KEY": "(not kept)", "lr": 1e-4, "wd": 0.1, "header": "x ${API_KEY}",
    }  # fmt: skip


def test_defaults_without_a_command_line_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    script, shell = tmp_path / "train.py", tmp_path / "train.sh"
    script.write_text('parser.add_argument("--lr", default=0.1)\nseed = 3')
    shell.write_text("python train.py --lr 0.05")
    assert collect([script], None, {})["hyperparameters"] == {"lr": 0.1}
    assert f"{script}: only defaults are known, as no given file holds a command line; " in caplog.text
    caplog.clear()
    assert collect([script, shell], None, {})["hyperparameters"] == {"lr": 0.05}
    assert "only defaults" not in caplog.text


def test_a_folder_is_told_what_is_accepted_in_its_place(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as settings:
        collect([tmp_path], None, {})
    assert str(settings.value) == (
        f"{tmp_path}: is a folder; name the files in it that hold settings: shell scripts (.sh), Python scripts (.py), "
        ".yaml or .json"
    )
    with pytest.raises(UsageError) as collection:
        read_collection(tmp_path)
    assert str(collection.value) == (
        f"{tmp_path}: is a folder; accepted is a collection, the .zip or .json that msprobe config_check -d -o FILE "
        "writes"
    )
