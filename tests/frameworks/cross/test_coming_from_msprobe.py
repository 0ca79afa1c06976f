"""The page for users of msprobe: every line of code and every command on it is run."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT

import msprobe_ms.pytorch
from msprobe_ms.cli.main import main
from msprobe_ms.dump.reading.locate import find_places
from msprobe_ms.dump.reading.reader import read_dump

PAGE = (ROOT / "docs" / "coming_from_msprobe.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)


def first_dump(path: Path) -> Path:
    return next(iter(find_places(path).values()))


def entries(path: Path) -> list[str]:
    return list(read_dump(first_dump(path)).entries)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder in which the page's python was run from beginning to end."""
    folder = tmp_path_factory.mktemp("page")
    sys.path.insert(0, str(ROOT / "msprobe_ms" / "compat"))  # as the installed package has it
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        namespace: dict[str, Any] = {}
        for number, code in enumerate(blocks("python")):
            exec(compile(code, f"block {number}", "exec"), namespace)
        yield folder
        namespace["seed_all"](1)
        msprobe_ms.mindspore.seed_all(1)
    sys.path.remove(str(ROOT / "msprobe_ms" / "compat"))


def test_the_scripts_record_what_the_page_says(written: Path) -> None:
    recorded = entries(written / "ms_dump")
    assert {"Cell.fc.Dense.forward.0", "Functional.relu.0.forward", "Cell.fc.Dense.parameters_grad.0"} <= set(recorded)
    assert len(find_places(written / "ms_dump")) == 1, "step 1 is not selected"
    assert {"Module.0.Linear.backward.0", "Functional.relu.0.forward"} <= set(entries(written / "target"))
    modules = ["Module.first.Linear.forward.0"]
    assert [name for name in entries(written / "modules") if name.startswith("Module.")] == modules
    assert list((written / "output").glob("compare_result_*.xlsx"))


@pytest.mark.parametrize("line", [line for block in blocks("console") for line in block.splitlines()])
def test_each_command(
    line: str, written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("target", "golden"):
        (tmp_path / name).symlink_to(written / name)
    paths = {"npu_path": str(first_dump(written / "target")), "bench_path": str(first_dump(written / "golden"))}
    (tmp_path / "compare.json").write_text(json.dumps(paths))
    (tmp_path / "dump.json").symlink_to(first_dump(written / "target"))
    if "merge_result" in line:
        (tmp_path / "merge.yaml").write_text("compare_index: [Max diff]\n")
        for rank in (0, 1):
            assert main(["compare", "-i", "compare.json", "-o", "made"]) == 0
            (table,) = Path("made").glob("compare_result_*.xlsx")
            Path("tables").mkdir(exist_ok=True)
            table.rename(f"tables/compare_result_rank{rank}-rank{rank}_20260101000000.xlsx")
    assert main(shlex.split(line)[1:]) == 0
    assert "msprobe: " not in capsys.readouterr().err
