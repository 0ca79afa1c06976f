"""What ``acc_check`` takes as a dump."""

from __future__ import annotations

from pathlib import Path

import pytest

from msprobe_ms.cli.accuracy.acc_check import dump_file_of
from msprobe_ms.support.errors import MsprobeError


def dump(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "dump.json").write_text("{}")
    return folder / "dump.json"


def test_a_file_a_rank_a_step_or_a_root_with_one_dump(tmp_path: Path) -> None:
    file = dump(tmp_path / "dump" / "step0" / "proc12")
    for path in (file, *file.parents[:3]):
        assert dump_file_of(path) == file


def test_of_several_one_is_to_be_named(tmp_path: Path) -> None:
    for rank in range(2):
        dump(tmp_path / "step0" / f"rank{rank}")
    with pytest.raises(MsprobeError, match=r"holds several dumps, step0 rank0, step0 rank1; give the folder of one$"):
        dump_file_of(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(MsprobeError, match=r"empty: no dump in it: found no folder"):
        dump_file_of(tmp_path / "empty")
