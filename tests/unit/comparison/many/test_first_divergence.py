"""``compare -da``: where error begins first, over ranks and steps, without tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from compare_parts import scale_against_good
from rank_dumps import write_run

from msprobe_ms.cli.main import main


def analysed(tmp_path: Path, *given: str) -> tuple[int, dict[str, Any]]:
    status = main(["compare", *given, "-o", str(tmp_path / "out"), "-da", "--exit-code"])
    (file,) = (tmp_path / "out").iterdir()
    assert file.name.startswith("diff_analyze_")
    return status, json.loads(file.read_text())


@pytest.mark.processes
def test_the_first_step_and_rank(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "target", steps=3, ranks=2, faulty=1, from_step=1)
    write_run(tmp_path / "golden", steps=3, ranks=2)
    status, found = analysed(tmp_path, "-tp", str(tmp_path / "target"), "-gp", str(tmp_path / "golden"))
    said = capsys.readouterr().out
    assert status == 1 and list(found) == ["rank1"]
    (node, *_) = found["rank1"]
    assert set(node) == {"op_name", "data_info", "stack_info"} and node["data_info"][0]["NPU Name"].startswith(
        node["op_name"]
    )
    assert "look at step 1, the first that diverges" in said and f"rank1: error begins at {node['op_name']}" in said


@pytest.mark.processes
def test_one_pair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scale_against_good(tmp_path / "dumps")
    status, found = analysed(tmp_path, "-tp", str(tmp_path / "dumps/scale"), "-gp", str(tmp_path / "dumps/good"))
    assert status == 1 and len(found) == 1 and next(iter(found.values()))[0]["op_name"]
    assert capsys.readouterr().out.startswith("DIVERGENT")


@pytest.mark.processes
def test_no_divergence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scale_against_good(tmp_path / "dumps")
    good = str(tmp_path / "dumps/good")
    assert analysed(tmp_path, "-tp", good, "-gp", good) == (0, {})
    assert capsys.readouterr().out.startswith("CONSISTENT")
