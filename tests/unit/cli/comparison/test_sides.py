"""What compare finds out of its two sides before it reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from msprobe_ms.cli.comparison.sides import Sides, means_kernels
from msprobe_ms.dump.writing.writer import DumpStore, EntryPart


def test_a_look_at_the_sides_says_nothing_of_which_process_is_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Who reads them says it, once."""
    for process in ("proc1", "proc2"):
        store = DumpStore(
            tmp_path / "step0" / process, task="statistics", level="L0", framework="pytorch", tensors=False
        )
        store.entry(EntryPart("Module.a.Linear.forward.0", []))
        store.export()
        store.close()
    assert not means_kernels(Sides(tmp_path / "step0", tmp_path / "step0"))
    assert not means_kernels(Sides(tmp_path, tmp_path))
    assert "dumps of 2 processes" not in caplog.text
