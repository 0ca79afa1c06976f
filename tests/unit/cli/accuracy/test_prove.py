"""``prove`` as a user types it, where nothing has to be run."""

from __future__ import annotations

from pathlib import Path

import pytest

from msprobe_ms.cli.main import main
from msprobe_ms.dump.writing.writer import DumpStore, EntryPart


def test_an_update_is_not_said_to_be_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    store = DumpStore(tmp_path / "rank0", task="statistics", level="L0", framework="pytorch", tensors=False)
    store.entry(EntryPart("Optimizer.fc.weight.0.forward", []))
    store.export()
    store.close()
    assert main(["prove", str(tmp_path), "--node", "Optimizer.fc.weight.0.forward"]) == 2
    assert "is an update of parameters, which is not run again" in capsys.readouterr().out
    assert "alone" not in caplog.text
