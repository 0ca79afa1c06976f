"""A step's dump being written: the three files, tensors, and what a hostile disk or folder does to them."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msprobe_ms.arrays.npy import write_npy
from msprobe_ms.dump.names import INCOMPLETE
from msprobe_ms.dump.writing import contents, journal, writer
from msprobe_ms.dump.writing.contents import (
    CALL_SITE,
    ENTRY,
    ENVELOPE,
    Envelope,
    encode_entry,
    encode_envelope,
    read_contents,
)
from msprobe_ms.dump.writing.export import export
from msprobe_ms.dump.writing.journal import JOURNAL_NAME, JournalWriter
from msprobe_ms.dump.writing.writer import DumpStore, EntryPart, process_folder
from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.files import replacing
from msprobe_ms.support.folder import Folder
from msprobe_ms.support.log import logger
from torture.interrupts.places import Interruption, Survey

texts = st.text(max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
anywhere = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def store_in(folder: Path, **keys: Any) -> DumpStore:
    keys = {"task": "statistics", "level": "mix", "framework": "mindspore", "tensors": False, **keys}
    return DumpStore(folder, **keys)


def put(store: DumpStore, name: str, parent: str | None = None, site: int | None = None, **fields: Any) -> None:
    store.entry(EntryPart(name, list(fields.items()), parent, site))


def read(folder: Path, name: str = "dump") -> Any:
    return json.loads((folder / f"{name}.json").read_bytes())


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# -- the three files ---------------------------------------------------------------------------------------------------


@anywhere
@given(st.lists(st.tuples(texts, st.dictionaries(texts, values, max_size=3)), max_size=6), st.integers())
def test_dump_json_is_what_json_writes(tmp_path: Path, entries: list[tuple[str, dict[str, Any]]], run: int) -> None:
    folder = tmp_path / f"run{run}"
    store = store_in(folder)
    expected: dict[str, Any] = {}
    for name, fields in entries:
        store.entry(EntryPart(name, list(fields.items())))
        expected[name] = expected.pop(name, {}) | fields
    store.close()
    whole = {
        "task": "statistics", "level": "mix", "framework": "mindspore", "dump_data_dir": None, "data": expected,
    }  # fmt: skip
    text = (folder / "dump.json").read_text()
    assert json.loads(text) == whole
    if all(expected.values()):
        assert text == json.dumps(whole, indent=1)


def test_an_entry_may_come_in_parts(tmp_path: Path) -> None:
    """Later parts add fields and replace them; the entry stands where its last part came."""
    store = store_in(tmp_path)
    put(store, "a", "p", 0, input=[1], output=[None])
    put(store, "b", input=[2])
    put(store, "a", output=[3], more=4)
    store.close()
    assert list(read(tmp_path)["data"].items()) == [
        ("b", {"input": [2]}),
        ("a", {"input": [1], "output": [3], "more": 4}),
    ]
    assert read(tmp_path, "construct") == {"b": None, "a": "p"}


def test_a_module_stands_after_what_ran_in_it(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    put(store, "outer", None, input=[1])
    put(store, "inner", "outer", input=[2])
    put(store, "innermost", "inner", input=[3])
    store.close()
    assert list(read(tmp_path)["data"]) == ["innermost", "inner", "outer"]


def test_call_sites_are_shared(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.call_site(7, ["File a.py, line 1, in f, \n x = 1", "File ü.py, line 2, in g, \n y"])
    put(store, "a", None, 7)
    put(store, "b", None, 7)
    put(store, "c")
    store.call_site(8, [])
    put(store, "d", None, 8)
    store.close()
    frames = ["File a.py, line 1, in f, \n x = 1", "File ü.py, line 2, in g, \n y"]
    assert read(tmp_path, "stack") == {"0": [["a", "b"], frames], "1": [["d"], []]}


def test_at_L1_there_are_no_parents(tmp_path: Path) -> None:
    store = store_in(tmp_path, level="L1")
    put(store, "a", "never")
    store.close()
    assert read(tmp_path, "construct") == {}


def test_parameter_gradients_have_no_parent(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    put(store, "Cell.fc.Dense.parameters_grad.0", weight=[None])
    store.close()
    assert read(tmp_path, "construct") == {}


def test_without_extra_info(tmp_path: Path) -> None:
    store = store_in(tmp_path, extra_info=False)
    put(store, "a", "p")
    store.close()
    assert names(tmp_path) == {"dump.json"}


def test_an_empty_step_is_a_valid_dump(tmp_path: Path) -> None:
    store_in(tmp_path, tensors=True).close()
    assert read(tmp_path)["data"] == {}
    assert read(tmp_path)["dump_data_dir"] == str(tmp_path / "dump_tensor_data")


def test_lone_surrogates_survive(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    put(store, "a\udce4", None, 0, **{"key\ud800": "value\udfff"})
    store.call_site(0, ["File \udce4.py"])
    store.close()
    assert read(tmp_path)["data"] == {"a\udce4": {"key\ud800": "value\udfff"}}
    assert read(tmp_path, "stack")["0"][1] == ["File \udce4.py"]


def test_export_as_often_as_wanted(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    for number in range(3):
        put(store, f"a{number}")
        store.export()
        assert list(read(tmp_path)["data"]) == [f"a{n}" for n in range(number + 1)]
        before = os.stat(tmp_path / "dump.json").st_mtime_ns, os.stat(tmp_path / "dump.json").st_ino
        store.export()  # nothing new: nothing written
        assert (os.stat(tmp_path / "dump.json").st_mtime_ns, os.stat(tmp_path / "dump.json").st_ino) == before
    assert JOURNAL_NAME in names(tmp_path)
    store.close()
    assert names(tmp_path) == {"dump.json", "stack.json", "construct.json"}


# -- tensors -----------------------------------------------------------------------------------------------------------


def test_tensor_files(tmp_path: Path) -> None:
    store = store_in(tmp_path, tensors=True)
    array = np.arange(6, dtype=np.float16).reshape(2, 3)
    store.tensor("a.npy", lambda file: np.save(file, array))
    assert np.array_equal(np.load(tmp_path / "dump_tensor_data" / "a.npy"), array)

    def fails(file: Any) -> None:
        file.write(b"half a tensor")
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError):
        store.tensor("b.npy", fails)
    assert names(tmp_path / "dump_tensor_data") == {"a.npy"}
    store.close()


def test_replacing_is_whole_or_absent(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with replacing(path) as file:
        file.write(b"one")
        assert not path.exists()
    assert path.read_bytes() == b"one"

    def interrupted() -> None:
        with replacing(path) as file:
            file.write(b"two")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"one"
    assert names(tmp_path) == {"file"}


# -- folders that are not as expected ----------------------------------------------------------------------------------


def test_process_folder() -> None:
    assert process_folder(Path("d"), 3, 7) == Path("d/step3/rank7")
    assert process_folder(Path("d"), 0, None) == Path(f"d/step0/proc{os.getpid()}")


def test_an_earlier_dump_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "step0" / "rank0"
    for number in range(3):
        store = store_in(folder)
        put(store, f"run{number}")
        store.close()
    assert list(read(folder)["data"]) == ["run2"]
    assert list(read(folder.with_name("earlier1_rank0"))["data"]) == ["run0"]
    assert list(read(folder.with_name("earlier2_rank0"))["data"]) == ["run1"]


def test_an_unfinished_dump_is_kept(tmp_path: Path) -> None:
    """The journal of a run that was killed can still be recovered after the next run."""
    folder = tmp_path / "rank0"
    killed = store_in(folder)
    put(killed, "of the killed run")
    del killed  # and with it its lock
    store = store_in(folder)
    put(store, "of the next run")
    store.close()
    assert list(read(folder)["data"]) == ["of the next run"]
    assert export(folder.with_name("earlier1_rank0")) == 1
    assert list(read(folder.with_name("earlier1_rank0"))["data"]) == ["of the killed run"]


def saved(store: DumpStore, name: str, value: int) -> None:
    """An entry and its tensor."""
    store.tensor(f"{name}.npy", lambda file: np.save(file, np.array([value])))
    put(store, name, value=value)


def content(folder: Path) -> tuple[dict[str, int], dict[str, int]]:
    """The values of a dump's entries and those of its tensors, both by their names."""
    files = (folder / "dump_tensor_data").iterdir()
    entries = {name: body["value"] for name, body in read(folder)["data"].items()}
    return entries, {file.stem: int(np.load(file)[0]) for file in files}


def test_a_second_writer_has_a_folder_of_its_own(tmp_path: Path) -> None:
    """Two jobs with one rank, or one PID in two containers: neither has a file of the other."""
    folder = tmp_path / "step0" / "rank0"
    first, second, third = stores = [store_in(folder, tensors=True) for _ in range(3)]
    assert [store.folder for store in stores] == [folder, *(folder.with_name(f"beside{n}_rank0") for n in (1, 2))]
    for name in "abc":
        for value, store in enumerate(stores):
            saved(store, name, value)
    first.export()
    second.close()
    fourth = store_in(folder, tensors=True)  # the second is over, the first is not
    assert fourth.folder == folder.with_name("beside1_rank0")
    saved(first, "d", 0)
    for store in (first, third, fourth):
        store.close()
    assert content(folder) == ({"a": 0, "b": 0, "c": 0, "d": 0},) * 2
    assert content(third.folder) == ({"a": 2, "b": 2, "c": 2},) * 2
    assert content(folder.with_name("earlier1_beside1_rank0")) == ({"a": 1, "b": 1, "c": 1},) * 2


def test_a_dump_that_is_moved_goes_on_where_it_is(tmp_path: Path) -> None:
    """Another process makes its own under the old name meanwhile, which stays as that process writes it."""
    folder, moved = tmp_path / "rank0", tmp_path / "elsewhere" / "mine"
    first = store_in(folder, tensors=True)
    saved(first, "a", 1)
    first.export()
    moved.parent.mkdir()
    folder.rename(moved)
    second = store_in(folder, tensors=True)
    for name in "bc":
        saved(first, name, 1)
        saved(second, name, 2)
    assert (first.folder, second.folder) == (moved, folder)
    first.close()
    second.close()
    assert content(moved) == ({"a": 1, "b": 1, "c": 1},) * 2
    assert content(folder) == ({"b": 2, "c": 2},) * 2
    assert read(moved)["dump_data_dir"] == str(moved / "dump_tensor_data")
    assert names(moved) == names(folder) == {"dump.json", "stack.json", "construct.json", "dump_tensor_data"}


def test_a_dump_that_is_moved_is_discarded_where_it_is(tmp_path: Path) -> None:
    empty = store_in(tmp_path / "rank0", tensors=True)
    (tmp_path / "rank0").rename(tmp_path / "moved")
    other = store_in(tmp_path / "rank0", tensors=True)
    saved(other, "a", 1)
    (tmp_path / "moved" / "notes.txt").write_text("mine")
    empty.discard()
    assert names(tmp_path / "moved") == {"notes.txt"}
    other.close()
    assert content(tmp_path / "rank0") == ({"a": 1},) * 2


@pytest.mark.parametrize("whole", [True, False])
def test_a_dump_that_is_removed_while_it_is_written(tmp_path: Path, whole: bool) -> None:
    """It is not made again without what it had, and another in its place is not touched."""
    store = store_in(tmp_path / "rank0", tensors=True)
    saved(store, "a", 1)
    shutil.rmtree(tmp_path / "rank0")
    if not whole:
        (tmp_path / "rank0").mkdir()
        (tmp_path / "rank0" / "notes.txt").write_text("mine")
    put(store, "b")
    with pytest.raises(FileNotFoundError):
        store.tensor("b.npy", lambda file: None)
    with pytest.raises(FileNotFoundError, match="the dump was moved or removed while it was written"):
        store.close()
    assert [path.name for path in tmp_path.rglob("*")] == ([] if whole else ["rank0", "notes.txt"])


@pytest.mark.processes
def test_a_forked_child_does_not_keep_its_parents_dump(tmp_path: Path) -> None:
    """Workers of data loaders live on after a training that was killed."""
    killed = store_in(tmp_path / "rank0")
    put(killed, "a")
    (end, beginning), (told, tell) = os.pipe(), os.pipe()
    if (child := os.fork()) == 0:
        os.close(beginning)
        os.write(tell, b"begun")
        os.read(end, 1)
        os._exit(0)
    try:
        os.read(told, 5)
        del killed
        store = store_in(tmp_path / "rank0")
        assert store.folder == tmp_path / "rank0"
        store.close()
    finally:
        for number in (beginning, end, told, tell):
            os.close(number)
        os.waitpid(child, 0)
    assert export(tmp_path / "earlier1_rank0") == 1


@pytest.mark.processes
@pytest.mark.parametrize("lies_there", ["nothing", "a dump", "a dump that was killed"])
def test_processes_that_begin_at_the_same_moment(tmp_path: Path, lies_there: str) -> None:
    """Each has a folder, and one of them the one that all asked for; what lay there is kept."""
    folder, count = tmp_path / "rank0", 8
    if lies_there != "nothing":
        earlier = store_in(folder, tensors=True)
        saved(earlier, "earlier", 99)
        if lies_there == "a dump":
            earlier.close()
        del earlier
    start, children = time.time() + 0.3, []
    for value in range(count):
        if (child := os.fork()) == 0:
            status = 1
            try:
                time.sleep(max(0.0, start - time.time()))
                store = store_in(folder, tensors=True)
                for name in "abc":
                    saved(store, name, value)
                time.sleep(0.5)
                store.close()
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    assert not any(os.waitpid(child, 0)[1] for child in children)
    dumps = [content(path) for path in tmp_path.iterdir() if (path / "dump.json").exists()]
    written = [entries for entries, tensors in dumps if entries == tensors]
    assert len(written) == len(dumps)
    expected = [dict.fromkeys("abc", value) for value in range(count)]
    assert sorted((each for each in written if "a" in each), key=lambda each: each["a"]) == expected
    assert len(written) == count + (lies_there == "a dump")
    assert ("a" in content(folder)[0]) and len(list(tmp_path.glob(f"*/{JOURNAL_NAME}"))) == (len(lies_there) > 20)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL])
def test_a_disk_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Whose a dump is cannot be told there, so it is moved aside; its process goes on with it all the same."""

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    first = store_in(tmp_path / "rank0", tensors=True)
    saved(first, "a", 1)
    second = store_in(tmp_path / "rank0", tensors=True)
    saved(first, "b", 1)
    saved(second, "c", 2)
    first.close()
    second.close()
    assert content(tmp_path / "earlier1_rank0") == ({"a": 1, "b": 1},) * 2
    assert content(tmp_path / "rank0") == ({"c": 2},) * 2


def test_a_record_that_readers_would_not_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused, and everything after it is still read."""
    monkeypatch.setattr(journal, "_LONGEST", 1000)
    store = store_in(tmp_path)
    put(store, "a")
    with pytest.raises(ValueError, match="are more than a record of the journal holds: 999"):
        put(store, "b", text="x" * 1000)
    put(store, "c")
    store.close()
    assert list(read(tmp_path)["data"]) == ["a", "c"]


@pytest.mark.parametrize("less", [1, 0])
def test_the_longest_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, less: int) -> None:
    monkeypatch.setattr(journal, "_LONGEST", 1000)
    written = journal_in(tmp_path)
    if less:
        written.append(b"?", b"x" * (1000 - less))
    else:
        with pytest.raises(ValueError, match="1000 bytes are more"):
            written.append(b"?", b"x" * 1000)
    written.append(ENTRY, encode_entry("a", [], None, None))
    assert export(tmp_path) == 1


@pytest.mark.parametrize("target", ["nowhere", JOURNAL_NAME, "."])
def test_a_link_in_the_place_of_the_journal(tmp_path: Path, target: str) -> None:
    """It is moved aside like a dump, wherever it leads; nobody waits for it to go away."""
    (tmp_path / "rank0").mkdir()
    (tmp_path / "rank0" / JOURNAL_NAME).symlink_to(target)
    store = store_in(tmp_path / "rank0")
    put(store, "a")
    store.close()
    assert list(read(tmp_path / "rank0")["data"]) == ["a"]
    assert os.readlink(tmp_path / "earlier1_rank0" / JOURNAL_NAME) == target


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="Not a directory"):
        store_in(tmp_path / "file" / "rank0")


def test_files_of_the_users_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    store_in(tmp_path).close()
    assert (tmp_path / "notes.txt").read_text() == "mine"


# -- journals that are not ours ----------------------------------------------------------------------------------------


def journal_in(folder: Path) -> JournalWriter:
    return JournalWriter(Folder(folder), ENVELOPE, encode_envelope(Envelope("statistics", "mix", "x", None)))


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (ENTRY, b"not json"),
        (ENTRY, b"{}"),
        (ENTRY, b'["a", null, null, [["x", 5]]]\nabc'),
        (ENTRY, b'["a", null, null, [["x", -5]]]\nabc'),
        (ENTRY, b'[["a"], null, null, []]\n'),
        (ENTRY, b'["a", ["p"], null, []]\n'),
        (ENTRY, b'["a", null, null, 7]\n'),
        (ENTRY, b"[" * 100_000),
        (CALL_SITE, b"7"),
        (CALL_SITE, b"\xff\xfe"),
        (ENVELOPE, b"[1]"),
        (ENVELOPE, b"null"),
    ],
)
def test_a_record_that_is_not_one_of_a_dump(tmp_path: Path, kind: bytes, payload: bytes) -> None:
    path, written = tmp_path / JOURNAL_NAME, journal_in(tmp_path)
    written.append(kind, payload)
    written.close()
    with pytest.raises(DumpFormatError, match=rf"{re.escape(str(path))}: the record at byte \d+ is not one of a dump"):
        export(tmp_path)
    assert names(tmp_path) == {JOURNAL_NAME}


def test_parents_in_a_circle_come_to_an_end(tmp_path: Path) -> None:
    written = journal_in(tmp_path)
    for name, parent in (("a", "b"), ("b", "a"), ("c", "c"), ("d", "a")):
        written.append(ENTRY, encode_entry(name, [], parent, None))
    written.close()
    assert export(tmp_path) == 4
    assert read(tmp_path, "construct") == {"c": "c", "d": "a", "a": "b", "b": "a"}


def test_unknown_kinds_of_records_are_passed_over(tmp_path: Path) -> None:
    """A later version may write more."""
    written = journal_in(tmp_path)
    written.append(b"?", b"later")
    written.close()
    assert export(tmp_path) == 0


def test_a_journal_without_its_first_record(tmp_path: Path) -> None:
    JournalWriter(Folder(tmp_path), b"?", b"").close()
    with pytest.raises(DumpFormatError, match="the journal's first record is missing or damaged; nothing to export"):
        export(tmp_path)


@pytest.mark.parametrize("array", [np.float32(3), np.zeros((0, 2)), np.arange(6).reshape(2, 3).T, np.ones(3, "V2")])
def test_npy_files_are_numpys(tmp_path: Path, array: Any) -> None:
    array = np.asarray(array)
    with (tmp_path / "a.npy").open("wb") as file:
        write_npy(file, array)
    np.save(tmp_path / "b.npy", array.copy(order="C"))
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()


def test_npy_on_a_full_disk_says_so() -> None:
    with pytest.raises(OSError, match="No space left on device") as caught, Path("/dev/full").open("wb", 0) as file:
        write_npy(file, np.zeros(100))
    assert caught.value.errno == errno.ENOSPC


def test_npy_of_python_objects_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "a.npy").open("wb") as file, pytest.raises(ValueError, match="Object arrays cannot be saved"):
        write_npy(file, np.array([object()]))


@pytest.mark.parametrize("damage", ["cut", "written into", "appended to"])
def test_a_journal_that_is_damaged_while_it_is_written(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logger, "propagate", True)
    store = DumpStore(tmp_path / "rank0", task="statistics", level="L1", framework="pytorch", tensors=False)
    for number in range(3):
        store.entry(EntryPart(f"Tensor.add.{number}.forward", [("input_args", [])]))
    with (tmp_path / "rank0" / JOURNAL_NAME).open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        if damage == "cut":
            file.truncate(size - 20)
        else:
            file.seek(size - 20 if damage == "written into" else size)
            file.write(b"\xff")
    store.entry(EntryPart("Tensor.add.3.forward", [("input_args", [])]))
    store.close()
    dump = json.loads((tmp_path / "rank0" / "dump.json").read_text())
    assert len(dump["data"]) == (3 if damage == "appended to" else 2)
    assert "damaged while it was written" in dump[INCOMPLETE]
    assert "what was recorded after that is not in the dump" in caplog.text


def nested(folder: Path) -> DumpStore:
    """A dump of a call in another, forward and backward, in parts."""
    store = DumpStore(folder, task="statistics", level="mix", framework="pytorch", tensors=False)
    outer, inner = "Module.a.A.{}.0", "Module.a.b.B.{}.0"
    store.call_site(0, ["File a.py, line 1, in f, \n f()"])
    store.entry(EntryPart(inner.format("forward"), [("input_args", [1])], outer.format("forward"), 0))
    store.entry(EntryPart(outer.format("forward"), [("input_args", [])], None, 0))
    store.entry(EntryPart(outer.format("backward"), [("input", [None])]))
    store.entry(EntryPart(inner.format("backward"), [("input", [None])], outer.format("backward"), complete=False))
    store.entry(EntryPart(inner.format("backward"), [("input", [2]), ("output", [3])], outer.format("backward")))
    store.entry(EntryPart(outer.format("backward"), [("output", [b"4"])], stays=True))
    return store


def test_an_index_that_is_kept_is_the_one_that_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = nested(tmp_path / "rank0")
    kept = store._journal.if_noted(store._contents.kept)
    with (tmp_path / "rank0" / JOURNAL_NAME).open("rb") as file:
        read = read_contents(file, tmp_path)
        assert kept is not None
        assert kept.is_of(file)
    for name in ("envelope", "length", "call_sites"):
        assert getattr(kept.contents, name) == getattr(read, name)
    assert list(kept.contents.entries.items()) == list(read.entries.items())
    monkeypatch.setattr("msprobe_ms.dump.writing.export.read_contents", None)  # it is not read again
    store.close()


@pytest.mark.parametrize("raised", [KeyboardInterrupt, MemoryError])
def test_a_record_that_was_not_noted_is_read(
    raised: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DumpStore(tmp_path / "rank0", task="statistics", level="mix", framework="pytorch", tensors=False)
    store.entry(EntryPart("a", []))

    def interrupted(*_: Any, **__: Any) -> int:
        raise raised

    with monkeypatch.context() as patch:
        patch.setattr(EntryPart, "note", interrupted)
        with pytest.raises(raised):
            store.entry(EntryPart("b", []))
    store.entry(EntryPart("c", []))
    store.close()
    assert list(json.loads((tmp_path / "rank0" / "dump.json").read_text())["data"]) == ["a", "b", "c"]


@pytest.mark.parametrize("after_calls", [False, True])
def test_an_index_is_read_where_something_interrupted_the_use_of_it(after_calls: bool, tmp_path: Path) -> None:
    expected = nested(tmp_path / "expected")
    with (survey := Survey(KeyboardInterrupt, after_calls=after_calls)):
        expected.export()
    expected.close()
    places = [place for place in survey.chosen(9) if place.code.co_filename in (contents.__file__, journal.__file__)]
    assert len(places) > 50
    for number, place in enumerate(places):
        store = nested(tmp_path / str(number))
        with suppress(KeyboardInterrupt), Interruption(KeyboardInterrupt, place):
            store.export()
        store.close()
        for name in ("dump.json", "stack.json", "construct.json"):
            made = tmp_path / str(number) / name
            assert made.read_bytes() == (tmp_path / "expected" / name).read_bytes(), place


texts = st.text(st.characters(codec=None), max_size=8)
leaves = st.lists(st.none() | st.binary(max_size=8), max_size=3)
plain = leaves | st.dictionaries(texts, st.none() | st.binary(max_size=8), max_size=3)
odd = st.booleans() | st.lists(st.integers() | texts, max_size=2) | st.dictionaries(texts, st.integers(), max_size=2)


@given(
    name=texts, parent=st.none() | texts, site=st.none() | st.integers(0, 1 << 40), stays=st.booleans(),
    fields=st.lists(st.tuples(texts, plain | odd), max_size=3),
)  # fmt: skip
def test_records_made_in_c_are_those_of_python(
    name: str, parent: str | None, site: int | None, stays: bool, fields: list[tuple[str, Any]]
) -> None:
    def encoded(text: Any) -> Any:
        return text.decode("latin-1").encode() if isinstance(text, bytes) else text

    fields = [
        (field, [encoded(each) for each in value] if isinstance(value, list) else
         {key: encoded(each) for key, each in value.items()} if isinstance(value, dict) else value)
        for field, value in fields
    ]  # fmt: skip
    part = EntryPart(name, fields, parent, site, stays=stays)
    assert part.encode() == part._encoded()[0]
    assert (part._record, part._lengths, part._head) == part._encoded()


@pytest.mark.skipif(writer._entry is None, reason="the extension is not built")
def test_which_records_are_made_in_c() -> None:
    assert writer._entry is not None
    for fields in ([], [("a", [])], [("a", {}), ("b", [b"1", None])], ((("a", {"b": b"1"})),)):
        assert writer._entry("a", None, None, False, fields) is not None
    for name, field in (
        ("ü", ("a", [])),
        ("a", ("a", True)),
        ("a", ("a", [1])),
        ("a", ("\ud800", [])),
        ("a", ('"', [])),
    ):
        assert writer._entry(name, None, None, False, [field]) is None
    with pytest.raises(TypeError):
        writer._entry("a", None, None, False)  # type: ignore[call-arg]
