"""Whether a dump is whole is told by what it holds: copies, archives and clocks change nothing."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from msprobe_ms.dump.reading import reader
from msprobe_ms.dump.reading.locate import (
    Place,
    dump_file,
    dumps_of_steps_before,
    find_dumps,
    find_places,
    parts_of,
)
from msprobe_ms.dump.reading.reader import read_dump
from msprobe_ms.dump.writing.export import recover
from msprobe_ms.dump.writing.journal import JOURNAL_NAME
from msprobe_ms.dump.writing.writer import DumpStore, EntryPart
from msprobe_ms.support.errors import DumpFormatError


def store_in(folder: Path) -> DumpStore:
    return DumpStore(folder, task="statistics", level="L0", framework="pytorch", tensors=False)


def put(store: DumpStore, *names: str) -> None:
    for name in names:
        store.entry(EntryPart(f"Module.{name}.Linear.forward.0", []))


def complete(folder: Path) -> None:
    store = store_in(folder)
    put(store, "a", "b")
    store.export()
    store.close()


def stopped(folder: Path) -> None:
    """Its process died after ``stop``, with nothing recorded since."""
    store = store_in(folder)
    put(store, "a", "b")
    store.export()


def killed(folder: Path) -> None:
    """Its process died after ``stop`` and another ``start``."""
    stopped(folder)
    lengthened(folder, b"torn")


def lengthened(folder: Path, record: bytes) -> None:
    with (folder / JOURNAL_NAME).open("ab") as file:
        file.write(record)


def recovered(folder: Path) -> None:
    killed(folder)
    list(recover(folder))


def old(folder: Path) -> None:
    """By a version that did not say how much of the journal was exported."""
    stopped(folder)
    content = (folder / JOURNAL_NAME).read_bytes()
    (folder / JOURNAL_NAME).write_bytes(content[:-25])


def old_and_complete(folder: Path) -> None:
    old(folder)
    (folder / JOURNAL_NAME).unlink()


#: A dump as it was left → what is said of it.
LEFT: dict[Callable[[Path], None], str] = {
    complete: "",
    stopped: "",
    killed: "its process was killed or could not write them: run msprobe recover",
    recovered: "recovered after its process was killed",
    old: "its process was killed or could not write them: run msprobe recover",
    old_and_complete: "",
}


def copied(folder: Path, target: Path) -> None:
    """As ``cp -r`` does: in the order of the folder, with the times of now, here always a second later."""
    target.mkdir()
    for number, name in enumerate(sorted(os.listdir(folder))):
        shutil.copyfile(folder / name, target / name)
        os.utime(target / name, (1e9 + number, 1e9 + number))


def copied_backwards(folder: Path, target: Path) -> None:
    target.mkdir()
    for number, name in enumerate(sorted(os.listdir(folder), reverse=True)):
        shutil.copyfile(folder / name, target / name)
        os.utime(target / name, (1e9 + number, 1e9 + number))


def archived(folder: Path, target: Path) -> None:
    shutil.make_archive(str(target), "zip", folder)
    with zipfile.ZipFile(f"{target}.zip") as file:
        file.extractall(target)


def moved(folder: Path, target: Path) -> None:
    folder.rename(target)


def after_the_clock_was_put_back(folder: Path, target: Path) -> None:
    folder.rename(target)
    for path in target.iterdir():
        os.utime(path, (1, 1) if path.name == JOURNAL_NAME else (2e9, 2e9))


def after_the_clock_was_put_forward(folder: Path, target: Path) -> None:
    folder.rename(target)
    for path in target.iterdir():
        os.utime(path, (2e9, 2e9) if path.name == JOURNAL_NAME else (1, 1))


WAYS = (
    copied,
    copied_backwards,
    archived,
    moved,
    after_the_clock_was_put_back,
    after_the_clock_was_put_forward,
)


@pytest.mark.parametrize("way", WAYS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("leave", LEFT, ids=lambda each: each.__name__)
def test_what_is_said_of_a_dump_stays_with_it(
    tmp_path: Path, leave: Callable[[Path], None], way: Callable[[Path, Path], None]
) -> None:
    leave(tmp_path / "rank0")
    damage = read_dump(tmp_path / "rank0").damage
    assert LEFT[leave] in damage and bool(LEFT[leave]) == bool(damage)
    way(tmp_path / "rank0", tmp_path / "rank1")
    assert read_dump(tmp_path / "rank1").damage == damage.replace("rank0", "rank1")


@pytest.mark.parametrize("content", [b"", b"of something else"])
def test_a_journal_that_the_dump_was_not_made_from(tmp_path: Path, content: bytes) -> None:
    complete(tmp_path / "rank0")
    (tmp_path / "rank0" / JOURNAL_NAME).write_bytes(content)
    assert "run msprobe recover" in read_dump(tmp_path / "rank0").damage


def test_an_empty_step_is_named(tmp_path: Path) -> None:
    (tmp_path / "step0" / "rank0").mkdir(parents=True)
    with pytest.raises(DumpFormatError, match=r"no dump in it: step0/rank0 holds no dump\.json; accepted are"):
        find_places(tmp_path)


def test_a_dump_that_is_being_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What was exported is read; of what is not the lock tells that it will come."""
    folder = tmp_path / "rank0"
    store = store_in(folder)
    put(store, "a")
    with pytest.raises(DumpFormatError, match=r"a journal but no dump\.json: its process is still writing it: wait"):
        dump_file(folder)
    store.export()
    with caplog.at_level("INFO", "msprobe_ms"):
        dump = read_dump(folder)
    assert (len(dump.entries), dump.damage) == (1, "")
    assert "its process is still writing it; what was recorded until now is read" in caplog.text
    put(store, "b")
    dump = read_dump(folder)
    assert len(dump.entries) == 1
    assert "calls are missing: its process is still writing it: wait until that step is over" in dump.damage
    store.export()
    assert read_dump(folder).damage == ""
    put(store, "c")
    del store  # its process is killed
    assert "its process was killed or could not write them: run msprobe recover" in read_dump(folder).damage


def test_a_dump_that_is_written_anew_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process completes it in the midst of reading: what was read of it is not all."""
    store = store_in(tmp_path / "rank0")
    put(store, "a")
    store.export()
    put(store, "b")
    read = reader._add_parents

    def complete_then_read(*arguments: Any) -> None:
        store.close()
        read(*arguments)

    monkeypatch.setattr(reader, "_add_parents", complete_then_read)
    dump = read_dump(tmp_path / "rank0")
    assert len(dump.entries) == 1
    assert dump.damage == f"{dump.path}: was written anew while it was read: compare again"
    monkeypatch.undo()
    assert len(read_dump(tmp_path / "rank0").entries) == 2


def test_second_writers_are_named_and_not_taken(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """They are no further ranks of a job."""
    stores = [store_in(tmp_path / "step0" / name) for name in ("rank0", "rank0", "rank1")]
    for store in stores:
        put(store, "a")
    for store in stores:
        store.close()
    assert list(find_dumps(tmp_path / "step0")) == ["rank0", "rank1"]
    assert [place.rank for place in find_places(tmp_path)] == ["rank0", "rank1"]
    assert "not taken: beside1_rank0, written by other processes at the same time" in caplog.text
    assert list(find_dumps(tmp_path / "step0" / "beside1_rank0")) == ["beside1_rank0"]
    assert [place.rank for place in find_places(tmp_path / "step0" / "beside1_rank0")] == ["beside1_rank0"]


@pytest.mark.parametrize("when", [0, 1e9])
def test_runs_of_one_time_are_not_taken_for_ranks(
    tmp_path: Path, when: float, caplog: pytest.LogCaptureFixture
) -> None:
    """As an archive without times unpacks them, in 1970."""
    for name in ("proc1", "proc2"):
        complete(tmp_path / name)
        for file in (tmp_path / name).iterdir():
            os.utime(file, (when, when))
    assert len(find_dumps(tmp_path)) == len(find_places(tmp_path)) == 1
    assert caplog.text.count("dumps of 2 processes") == 2
    assert find_places(tmp_path, quiet=True) == find_places(tmp_path)
    assert caplog.text.count("dumps of 2 processes") == 3


def test_a_divided_step_is_named_as_if_it_were_not(tmp_path: Path) -> None:
    for half in ("graph", "pynative"):
        for step in (0, 1):
            complete(tmp_path / half / f"step{step}" / "rank0")
    whole = tmp_path / "step0" / "rank0" / "dump.json"
    assert find_places(tmp_path) == {Place(0, "rank0"): whole, Place(1, "rank0"): tmp_path / "step1/rank0/dump.json"}
    for path in (tmp_path / "step0", whole.parent, whole):
        assert find_places(path) == {Place(0, "rank0"): whole} and find_dumps(path) == {"rank0": whole}
    assert parts_of(whole) == [tmp_path / half / "step0/rank0/dump.json" for half in ("pynative", "graph")]
    assert dumps_of_steps_before(tmp_path / "step1/rank0/dump.json") == {1: whole}
    # Each half is reached by its own name.
    alone = tmp_path / "graph" / "step0" / "rank0" / "dump.json"
    assert find_places(tmp_path / "graph" / "step0") == {Place(0, "rank0"): alone} and parts_of(alone) == [alone]
    with pytest.raises(DumpFormatError, match="no such file or folder"):
        find_places(tmp_path / "step2")


def test_an_empty_step_beside_halves_is_no_dump(tmp_path: Path) -> None:
    """As a run leaves it that ended before it met a graph."""
    for half in ("graph", "pynative"):
        complete(tmp_path / half / "step0" / "rank0")
    (tmp_path / "step0" / "rank0").mkdir(parents=True)
    for path in (tmp_path, tmp_path / "step0", tmp_path / "step0" / "rank0"):
        (found,) = find_places(path).values()
        assert parts_of(found) == [tmp_path / half / "step0/rank0/dump.json" for half in ("pynative", "graph")]


def test_a_step_that_was_killed_is_divided_otherwise(tmp_path: Path) -> None:
    """What ran outside of graphs lies where that of an undivided step does, until the step is over."""
    own, graph = tmp_path / "step0" / "rank0", tmp_path / "graph" / "step0" / "rank0"
    complete(graph)
    assert find_places(tmp_path) == {Place(0, "rank0"): graph / "dump.json"}
    killed(own)
    assert find_places(tmp_path) == {Place(0, "rank0"): own / "dump.json"}
    assert parts_of(own) == [own / "dump.json", graph / "dump.json"]
    (own / "dump.json").unlink()
    assert parts_of(own) == [own, graph / "dump.json"]


def test_halves_beside_a_step_that_is_not_divided_are_of_an_earlier_run(tmp_path: Path) -> None:
    for folder in ("step0/rank0", "graph/step0/rank0", "pynative/step0/rank0"):
        complete(tmp_path / folder)
    found = find_places(tmp_path)
    assert found == {Place(0, "rank0"): tmp_path / "step0/rank0/dump.json"}
    assert parts_of(found[Place(0, "rank0")]) == [tmp_path / "step0/rank0/dump.json"]
