"""What a journal holds is exported after the process that wrote it died; how processes die: test_kills."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from msprobe_ms.dump.writing.contents import ENTRY
from msprobe_ms.dump.writing.export import recover
from msprobe_ms.dump.writing.journal import JOURNAL_NAME
from msprobe_ms.dump.writing.writer import DumpStore, EntryPart
from msprobe_ms.support.errors import DumpFormatError


def unfinished(folder: Path, *names: str) -> None:
    store = DumpStore(folder, task="statistics", level="L0", framework="mindspore", tensors=False)
    for name in names:
        store.entry(EntryPart(name, [("output", [None])]))
    # With the last reference to the store goes its lock, as with a process.


def test_a_dump_that_is_being_written_is_left_to_its_process(tmp_path: Path) -> None:
    store = DumpStore(tmp_path / "rank0", task="statistics", level="L0", framework="mindspore", tensors=False)
    store.entry(EntryPart("a", []))
    for _ in range(2):
        (found,) = recover(tmp_path)
        assert (found.entries, found.problem.partition(",")[0]) == (0, "its process is still writing it")
    assert [path.name for path in (tmp_path / "rank0").iterdir()] == [JOURNAL_NAME]
    copied = shutil.copytree(tmp_path / "rank0", tmp_path / "copy")
    assert [found.entries for found in recover(copied)] == [1]
    store.entry(EntryPart("b", []))
    store.close()
    content = json.loads((tmp_path / "rank0" / "dump.json").read_text())
    assert list(content["data"]) == ["a", "b"]
    assert "recovered" not in content


def test_every_journal_below_a_folder(tmp_path: Path) -> None:
    unfinished(tmp_path / "step0" / "rank0", "a", "b")
    unfinished(tmp_path / "step0" / "rank1", "c")
    unfinished(tmp_path / "step1" / "rank0")
    found = list(recover(tmp_path))
    assert [(each.folder.relative_to(tmp_path).as_posix(), each.entries, each.problem) for each in found] == [
        ("step0/rank0", 2, ""), ("step0/rank1", 1, ""), ("step1/rank0", 0, ""),
    ]  # fmt: skip
    assert list(json.loads((tmp_path / "step0" / "rank0" / "dump.json").read_text())["data"]) == ["a", "b"]
    assert list(recover(tmp_path)) == found  # twice does no harm


def test_one_broken_journal_does_not_keep_the_others(tmp_path: Path) -> None:
    unfinished(tmp_path / "a", "a")
    unfinished(tmp_path / "b", "b")
    unfinished(tmp_path / "c", "c")
    (tmp_path / "a" / JOURNAL_NAME).write_bytes(b"not one")
    store = DumpStore(tmp_path / "d", task="statistics", level="L0", framework="mindspore", tensors=False)
    store._journal.append(ENTRY, b"damaged by something that also made a checksum")
    store._journal.close()
    found = {each.folder.name: (each.entries, each.problem) for each in recover(tmp_path)}
    assert found["b"] == found["c"] == (1, "")
    assert found["a"][0] == found["d"][0] == 0
    assert "not a journal of msprobe_ms" in found["a"][1]
    assert "is not one of a dump" in found["d"][1]


def test_a_journal_torn_at_any_byte(tmp_path: Path) -> None:
    folder = tmp_path / "rank0"
    unfinished(folder, "a", "b")
    whole = (folder / JOURNAL_NAME).read_bytes()
    counts = []
    for length in range(len(whole) + 1):
        (folder / JOURNAL_NAME).write_bytes(whole[:length])
        (found,) = recover(folder)
        counts.append(found.entries)
        if not found.problem:
            assert list(json.loads((folder / "dump.json").read_text())["data"]) == ["a", "b"][: found.entries]
    assert counts == sorted(counts)
    assert counts[-1] == 2


@pytest.mark.parametrize("kind", ["missing", "file", "empty"])
def test_nothing_to_recover(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "dump"
    if kind == "file":
        path.write_text("")
    elif kind == "empty":
        path.mkdir()
    with pytest.raises(DumpFormatError) as caught:
        list(recover(path))
    assert str(caught.value) == f"{path}: " + (
        "nothing to recover here or below: no dump.journal. A dump that ended in good order has none; "
        "its dump.json is complete"
        if kind == "empty"
        else "not a folder; give a dump folder, one of its steps, or a rank of a step"
    )


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "rank0"
    unfinished(folder, "a")
    (folder / "dump.json").mkdir()  # nothing can replace it
    (found,) = recover(folder)
    assert found.entries == 0
    assert "dump.json" in found.problem
