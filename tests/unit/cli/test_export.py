"""``msprobe export`` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from repository import DATA, ROOT

from msprobe_ms.cli.export import add_export
from msprobe_ms.cli.main import main
from msprobe_ms.comparison.export.export import FORMATS

GOOD = ROOT / "samples" / "golden"
LENET = str(DATA / "golden" / "mindspore_lenet_L1_tensor")


def test_the_files_that_were_written_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "-tp", LENET, "-gp", LENET, "--to", "model-explorer", "-o", str(tmp_path / "out")]) == 0
    told = [Path(line.removeprefix("export: ")) for line in capsys.readouterr().out.splitlines()]
    assert [file.name.partition(".")[2] for file in told] == ["graph.json", "deviation.json", "sync.json"]
    assert sorted(told) == sorted((tmp_path / "out").iterdir())


def test_a_mapping_pairs_as_in_compare(tmp_path: Path) -> None:
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text("TopLayer:\n  blocks: blocks\n")
    for given in (["-lm", str(mapping)], ["-lm"], ["-cm"], ["-f"]):
        out = tmp_path / "".join(given).replace("/", "_")
        assert main(["export", "-tp", str(GOOD), "-gp", str(GOOD), "--to", "dot", "-o", str(out), *given]) == 0
        texts = [file.read_text() for file in out.iterdir()]
        assert len(texts) == 2 and all("agrees" in text and "unmatched" not in text for text in texts)


def test_exports_are_never_overwritten(tmp_path: Path) -> None:
    for _ in range(2):
        assert main(["export", "-tp", LENET, "--to", "model-explorer", "-o", str(tmp_path)]) == 0
    files = list(tmp_path.iterdir())
    assert len(files) == 2 and all(json.loads(file.read_bytes())["graphs"] for file in files)


def test_options_of_a_comparison_need_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "-tp", LENET, "--to", "dot", "-lm", "-o", str(tmp_path / "out")]) == 2
    assert "name the other dump with -gp" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_help_knows_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["export", "-h"])
    told = capsys.readouterr().out
    assert all(name in told for name in FORMATS) and callable(add_export)


def test_the_name_and_options_of_msprobe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["graph_visualize", "-tp", LENET, "-o", str(tmp_path)]
    assert main(given) == 0 and main([*given, "-gp", LENET, "-fm", "-lm", "-tensor_log"]) == 0
    kinds = sorted(file.name.partition("_")[0] for file in tmp_path.glob("*.vis.db"))
    assert kinds == ["build", "compare"]
    capsys.readouterr()
    for refused in (["-oc"], ["--file_type", "json"], ["--tp", "2"]):
        assert main([*given, *refused]) == 2
        assert capsys.readouterr().err.startswith(f"msprobe: graph_visualize: {' '.join(refused)[:9].split(' 2')[0]}")
