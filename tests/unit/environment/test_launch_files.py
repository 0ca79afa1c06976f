"""What a shell script gives to a training."""

from __future__ import annotations

from pathlib import Path

import pytest

from msprobe_ms.cli import main
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


def test_options_of_several_commands_are_told_apart(tmp_path: Path) -> None:
    shell = tmp_path / "run.sh"
    shell.write_text(
        "python prepare.py --batch-size 64 --seed 1 && cd x; torchrun --nproc 2 train.py --batch-size 32\n"
        "torchrun train.py --batch-size 16\n"
    )
    assert collect([shell], None, {})["hyperparameters"] == {
        "prepare.batch-size": 64, "nproc": 2, "train.batch-size": 32, "train2.batch-size": 16,
    }  # fmt: skip


def test_what_a_shell_script_alone_does_not_tell_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script, shell = tmp_path / "train.py", tmp_path / "train.sh"
    script.write_text("LR = 0.1")
    shell.write_text("python src/train.py --lr 0.05")
    assert main(["config_check", "-d", str(shell), "-o", str(tmp_path / "a.zip")]) == 0
    _, defaults, data = capsys.readouterr().out.splitlines()
    assert defaults.startswith("  of train.py only the options in the shell script are compared, not the defaults")
    assert data == "  data and weights are not compared: give a dump with --dump"
    assert main(["config_check", "-d", str(shell), str(script), "-o", str(tmp_path / "a.zip")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
