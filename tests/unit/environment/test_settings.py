"""Of several values of one setting the right one counts, or all are compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from msprobe_ms.environment.collect import collect
from msprobe_ms.environment.compare import ConfigRow, Status, compare_collections
from msprobe_ms.environment.report import environment_lines


def errors(rows: list[ConfigRow]) -> dict[str, tuple[Any, Any]]:
    return {row.name: (row.target, row.golden) for row in rows if row.status is Status.ERROR}


@pytest.mark.parametrize("names", [("train.sh", "train.py"), ("train.py", "train.sh")])
def test_an_option_of_a_command_line_wins_over_the_default_of_a_script(tmp_path: Path, names: tuple[str, str]) -> None:
    (tmp_path / "train.py").write_text(
        'parser.add_argument("--lr", default=.1)\nparser.add_argument("--epochs", default=3)'
    )
    sides = []
    for rate in ("0.1", "0.01"):
        (tmp_path / "train.sh").write_text(f"python train.py --learning-rate {rate}")
        sides.append(collect([tmp_path / name for name in names], None, {}))
    assert sides[1]["hyperparameters"] == {"learning-rate": 0.01, "epochs": 3}
    assert errors(compare_collections(*sides)) == {"learning_rate": (0.1, 0.01)}


def test_every_value_that_files_give_one_setting_is_compared_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sides = []
    (tmp_path / "train.sh").write_text("LR=1e-3\npython a.py --bs 4")
    for rate in (0.1, 0.2):
        (tmp_path / "model.yaml").write_text(f"lr: {rate}\nbatch_size: 4")
        sides.append(collect([tmp_path / "train.sh", tmp_path / "model.yaml"], None, {}))
    said = [record.getMessage() for record in caplog.records]
    assert said[:1] == [
        f"learning_rate has several values, and each is compared: 0.001 ({tmp_path}/train.sh), "
        f"0.1 ({tmp_path}/model.yaml)"
    ]
    rows = compare_collections(*sides)
    assert errors(rows) == {"learning_rate": ([1e-3, 0.1], [1e-3, 0.2])}
    assert "  error: hyperparameters learning_rate: 0.001; 0.1, golden 0.001; 0.2" in environment_lines(rows)
