"""``api_precision_compare`` as a user types it."""

from __future__ import annotations

from pathlib import Path

import pytest
from precheck_tables import APIS, details

from msprobe_ms.cli.main import main


def run(*arguments: object) -> int:
    return main(["api_precision_compare", *map(str, arguments)])


@pytest.mark.parametrize("names", [("-npu", "-gpu"), ("-tp", "-gp"), ("--npu_csv_path", "--gpu_csv_path")])
def test_the_command(names: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = details(tmp_path / "a", {}), details(tmp_path / "b", dict.fromkeys(APIS, 1e-2))
    out = tmp_path / "out"
    assert run(names[0], good, names[1], good, "-o", out, "--exit-code") == 0
    assert "6 pass, 0 warning, 0 error, 0 SKIP of 6 API calls" in capsys.readouterr().out
    assert run(names[0], bad, names[1], good, "-o", out) == 0
    assert run(names[0], bad, names[1], good, "--out_path", out, "--exit-code") == 1
    told = capsys.readouterr().out
    assert "  error: Torch.exp.0: ERROR: 均方根误差比值超过阈值" in told and "report: " in told
    assert len(list(out.glob("api_precision_compare_result_*.csv"))) == 3


def test_mistakes_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = details(tmp_path / "a", {})
    assert run("-npu", tmp_path / "none.csv", "-gpu", good, "-o", tmp_path / "out") == 2
    told = capsys.readouterr().err
    assert told.startswith(f"msprobe: {tmp_path}/none.csv: cannot be read: ") and told.count("\n") == 1
    assert not (tmp_path / "out").exists()
    (tmp_path / "t.yaml").write_text("compare_v110: {x: 1}")
    assert run("-npu", good, "-gpu", good, "--thresholds", tmp_path / "t.yaml") == 2
    with pytest.raises(SystemExit):
        run("-npu", good)
