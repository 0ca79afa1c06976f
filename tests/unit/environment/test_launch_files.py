"""What a shell script gives to a training."""

from __future__ import annotations

from pathlib import Path

from msprobe_ms.environment.collect import collect


def test_variables_of_a_shell_script_are_filled_in_but_for_secrets(tmp_path: Path) -> None:
    script = 'LR=1e-4\nAPI_KEY=abc\nrun --lr $LR --wd ${WD:-0.1} --seed ${1} --header "x ${API_KEY}"'
    (tmp_path / "train.sh").write_text(script)
    assert collect([tmp_path / "train.sh"], None, {})["hyperparameters"] == {
        "LR": 1e-4, "API_KEY": "(not kept)", "lr": 1e-4, "wd": 0.1, "header": "x ${API_KEY}",
    }  # fmt: skip
