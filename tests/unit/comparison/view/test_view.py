"""Which pages are written of a dump: one for each rank and step, and one of them all."""

from __future__ import annotations

from pathlib import Path

import pytest
from rank_dumps import write_run

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
