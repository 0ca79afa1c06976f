"""All reports of a comparison are written, and are the same, whether one process writes them or two."""

from __future__ import annotations

import resource
from pathlib import Path

import numpy as np
import pytest
from rank_dumps import call, write_dump

from msprobe_ms.comparison.run import Options, compare_one
from msprobe_ms.support.errors import UsageError


def write_both(folder: Path) -> tuple[Path, Path]:
    for name, given in (("target", [1.0, 2.5]), ("golden", [1.0, 2.0])):
        taken, results = np.array([1.0, 2.0], np.float32), np.array(given, np.float32)
        write_dump(folder / name, {"Functional.relu.0.forward": call(taken, results)})
    return folder / "target" / "dump.json", folder / "golden" / "dump.json"


@pytest.mark.processes
def test_two_processes_write_what_one_does(tmp_path: Path) -> None:
    both, written = write_both(tmp_path), {}
    for forks in (False, True):
        output, options = tmp_path / f"forks {forks}", Options(csv=True, html=True, advice=True)
        files = compare_one(*both, output, options, "20260101000000", forks=forks).files
        assert sorted(files) == sorted(output.iterdir())
        written[forks] = {file.name: file.read_bytes() for file in files}
        assert [name.rpartition("_")[0] for name in written[forks]] == [
            "compare_report", "compare_result", "advisor", "compare_summary",
        ]  # fmt: skip
    assert written[False] == written[True]


@pytest.mark.processes
def test_a_folder_that_cannot_be_written_is_told_as_ever(tmp_path: Path) -> None:
    both, file = write_both(tmp_path), tmp_path / "file"
    file.touch()
    for forks in (False, True):
        with pytest.raises(UsageError, match="the report cannot be written: Not a directory; accepted is a writable"):
            compare_one(*both, file / "below", Options(csv=True, html=True), "20260101000000", forks=forks)


@pytest.mark.processes
def test_what_speaks_of_a_table_that_cannot_be_written_is_removed(tmp_path: Path) -> None:
    both, before = write_both(tmp_path), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))  # less than a spreadsheet takes
    try:
        with pytest.raises(UsageError, match="cannot be written: File too large"):
            compare_one(*both, tmp_path / "out", Options(advice=True), "20260101000000", forks=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list((tmp_path / "out").iterdir()) == []
