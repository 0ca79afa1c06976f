"""Which pages are written of a dump: one for each rank and step, and one of them all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kernel_dumps import lay_out
from rank_dumps import write_run
from report_page import Page

from msprobe_ms.cli.main import main
from msprobe_ms.comparison.view.view import view
from msprobe_ms.support.errors import DumpFormatError


def test_every_step_and_rank_has_its_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "dump", steps=2, ranks=1)
    assert main(["view", str(tmp_path / "dump"), "-o", str(tmp_path / "out")]) == 0
    names = sorted(path.name.rpartition("_")[0] for path in (tmp_path / "out").iterdir())
    assert names == ["dump_view", "dump_view_step0_rank0", "dump_view_step1_rank0"]
    assert capsys.readouterr().out.count("page: ") == 3


def test_where_there_is_no_dump_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(DumpFormatError):
        list(view(tmp_path, tmp_path, "1"))


def test_raw_files_of_kernels_have_a_page_for_each_iteration(tmp_path: Path) -> None:
    ones = np.ones((2, 2), np.float32)
    kernel = "MatMul.Default_fc-Dense_MatMul-op0"
    for step, result in enumerate((ones, 50 * ones, np.full((2, 2), np.inf, np.float32))):
        lay_out(tmp_path / f"dump/rank_0/Net/0/{step}", {f"{kernel}.input.0": ones, f"{kernel}.output.0": result})
    *single, both = view(tmp_path / "dump", tmp_path, "1")
    assert [path.name for path in single] == [f"dump_view_step{step}_rank0_1.html" for step in range(3)]
    page = Page.of(both)
    assert [each["verdict"] for each in page.index["pairs"]] == ["finite", "finite", "not finite"]
    assert "MatMul" in page.index["pairs"][2]["origin"] and len(page.index["trends"]) == 1
