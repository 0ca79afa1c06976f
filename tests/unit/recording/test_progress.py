"""The bar while a large step's files are written."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from msprobe_ms.config import load_config
from msprobe_ms.dump.writing.export import export
from msprobe_ms.dump.writing.writer import DumpStore, EntryPart
from msprobe_ms.recording.progress import Status


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _written(folder: Path, entries: int) -> DumpStore:
    store = DumpStore(folder, task="statistics", level="L1", framework="pytorch", tensors=False)
    for number in range(entries):
        store.entry(EntryPart(f"Functional.relu.{number}.forward", [("input_args", [number])]))
    return store


def test_export_tells_how_far_it_is(tmp_path: Path) -> None:
    _written(tmp_path, 3)
    steps: list[tuple[int, int]] = []
    assert export(tmp_path, progress=lambda done, total: steps.append((done, total))) == 3
    assert steps == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(("entries", "rank", "shown"), [(20_000, None, True), (20, None, False), (20_000, 3, False)])
def test_only_a_large_step_of_the_speaking_rank_has_a_bar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entries: int, rank: int | None, shown: bool
) -> None:
    terminal = _Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    status = Status(load_config(dump_path=tmp_path), rank)
    with status.exporting() as progress:
        _written(tmp_path / "rank", entries).close(progress)
    assert ("writing dump.json" in terminal.getvalue()) is shown
    if shown:
        assert f"/{entries}" in terminal.getvalue()


def test_files_that_are_links_of_one_another_count_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.npy").write_bytes(b"x" * 2000)
    (tmp_path / "b.npy").hardlink_to(tmp_path / "a.npy")
    (tmp_path / "c.npy").write_bytes(b"x" * 1000)
    Status(load_config(dump_path=tmp_path), None).end(tmp_path, 3)
    assert f"{tmp_path}: 3 entries, 3.0 kB; the step took" in caplog.text


def test_the_first_selected_rank_speaks(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"task": "statistics", "dump_path": "./d", "rank": [2, 5]}')
    config = load_config(path)
    assert [rank for rank in (0, 2, 5) if Status(config, rank).speaks] == [2]
