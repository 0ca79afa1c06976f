"""Folders that strangers use while a training records into them: each dump stays whole and by itself."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.dump.writing import journal
from msprobe_ms.dump.writing.journal import JOURNAL_NAME
from msprobe_ms.dump.writing.writer import ERROR_LOG, TENSOR_FOLDER, DumpStore
from msprobe_ms.pytorch import PrecisionDebugger


def net() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))


def trained(model: torch.nn.Module) -> None:
    model(torch.ones(2, 4)).sum().backward()


def recorded(dump_path: Path, **keys: Any) -> Path:
    """The dump of two passes in one step, with nobody around."""
    model, debugger = net(), PrecisionDebugger(dump_path=dump_path, task="tensor", level="mix", **keys)
    debugger.start(model, rank_id=0)
    trained(model)
    trained(model)
    debugger.stop()
    debugger.step()
    debugger.retire()
    return dump_path / "step0" / "rank0"


def files(folder: Path) -> dict[str, Any]:
    """What a dump consists of: its tensors, and its entries without where they are."""
    tensors = {path.name: torch.load(path).tolist() for path in (folder / TENSOR_FOLDER).iterdir()}
    return tensors | {"data": json.loads((folder / "dump.json").read_text())["data"]}


def others_dump(folder: Path) -> DumpStore:
    """Stands for another process, which holds the lock of a dump as long as it lives."""
    return DumpStore(folder, task="tensor", level="mix", framework="pytorch", tensors=True)


def config(tmp_path: Path, is_async: bool) -> dict[str, Any]:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"task": "tensor", "level": "mix", "async_dump": is_async}))
    return {"config_path": path}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("stranger", [False, True])
def test_a_folder_that_is_moved_takes_the_whole_dump_along(tmp_path: Path, is_async: bool, stranger: bool) -> None:
    keys = config(tmp_path, is_async)
    expected = files(recorded(tmp_path / "alone", **keys))
    folder, moved = tmp_path / "dump" / "step0" / "rank0", tmp_path / "moved"
    model = net()
    debugger = PrecisionDebugger(dump_path=tmp_path / "dump", task="tensor", level="mix", **keys)
    debugger.start(model, rank_id=0)
    trained(model)
    (tmp_path / "dump" / "step0").rename(moved)
    other = others_dump(folder) if stranger else None
    trained(model)
    debugger.stop()
    debugger.step()
    assert files(moved / "rank0") == expected
    assert read_dump(moved / "rank0").damage == ""
    assert not [path for path in moved.rglob("*") if path.name in (ERROR_LOG, JOURNAL_NAME) or path.suffix == ".tmp"]
    if other is None:
        assert not folder.exists()
    else:
        other.close()
        assert files(folder) == {"data": {}}
    debugger.retire()


def test_a_folder_in_use_is_left_and_told_once(tmp_path: Path, warnings: list[str]) -> None:
    expected = files(recorded(tmp_path / "alone"))
    others = [others_dump(tmp_path / f"dump/step{step}/rank0") for step in range(2)]
    model = net()
    debugger = PrecisionDebugger(dump_path=tmp_path / "dump", task="tensor", level="mix")
    for _ in range(3):
        debugger.start(model, rank_id=0)
        trained(model)
        trained(model)
        debugger.stop()
        debugger.step()
    debugger.retire()
    (warning,) = warnings
    first = tmp_path / "dump" / "step0"
    assert warning.startswith(
        f"{first / 'rank0'}: another process is writing its dump there; that of this one goes to "
        f"{first / 'beside1_rank0'}, and likewise in later steps"
    )
    assert files(first / "beside1_rank0") == expected
    # The other has not come there yet; the dumps of one process have one name all the same.
    assert [path.name for path in (tmp_path / "dump" / "step2").iterdir()] == ["beside1_rank0"]
    for step, other in enumerate(others):
        other.close()
        assert files(tmp_path / f"dump/step{step}/rank0") == {"data": {}}
    for step in range(3):
        assert read_dump(tmp_path / f"dump/step{step}/beside1_rank0").damage == ""


def test_a_folder_that_is_removed_costs_the_dump_alone(tmp_path: Path, warnings: list[str]) -> None:
    model = net()
    debugger = PrecisionDebugger(dump_path=tmp_path / "dump", task="tensor", level="mix")
    for step in range(2):
        debugger.start(model, rank_id=0)
        trained(model)
        if not step:
            shutil.rmtree(tmp_path / "dump")
        trained(model)
        debugger.stop()
        debugger.step()
    debugger.retire()
    assert not (tmp_path / "dump" / "step0").exists()
    assert read_dump(tmp_path / "dump" / "step1" / "rank0").damage == ""
    assert any("step0" in warning for warning in warnings)


def test_an_entry_that_is_longer_than_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is missing and said to be, all others are there."""

    class Many(torch.nn.Module):
        def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
            return tensors[0]

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.many, self.after = torch.nn.Linear(4, 4), Many(), torch.nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.after(self.many(*[self.before(x)] * 100))

    monkeypatch.setattr(journal, "_LONGEST", 10_000)
    model = Net()
    debugger = PrecisionDebugger(dump_path=tmp_path / "dump", level="L0")
    debugger.start(model, rank_id=0)
    trained(model)
    debugger.stop()
    debugger.step()
    debugger.retire()
    dump = read_dump(tmp_path / "dump" / "step0" / "rank0")
    names = {name for name in dump.entries if name.startswith("Module.")}
    directions = ("forward.0", "backward.0", "parameters_grad.0")
    assert names >= {f"Module.{name}.Linear.{direction}" for name in ("before", "after") for direction in directions}
    assert "Module.many.Many.forward.0: ValueError: " in dump.damage
    assert "more than a record of the journal holds: 9999" in (dump.path.parent / ERROR_LOG).read_text()
