"""The journal: whole records or none, whatever happens to the file."""

from __future__ import annotations

import errno
import os
import threading
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msprobe_ms.dump.writing import journal
from msprobe_ms.dump.writing.journal import MAGIC, JournalWriter, Record, read_journal
from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.folder import Folder
from torture.failing_disk.disk import FailingDisk, Fault

kinds = st.binary(min_size=1, max_size=1)
records = st.lists(st.tuples(kinds, st.binary(max_size=200)), max_size=10)
anywhere = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def begin(path: Path, payload: bytes = b"first") -> JournalWriter:
    return JournalWriter(Folder(path.parent), b"D", payload, path.name)


def write(path: Path, *content: tuple[bytes, bytes]) -> None:
    path.unlink(missing_ok=True)
    journal = begin(path)
    for kind, payload in content:
        journal.append(kind, payload)
    journal.close()


def read(path: Path) -> list[tuple[bytes, bytes]]:
    return [(record.kind, record.payload) for record in read_journal(path)]


@anywhere
@given(records)
def test_round_trip(tmp_path: Path, content: list[tuple[bytes, bytes]]) -> None:
    path = tmp_path / "journal"
    write(path, *content)
    assert read(path) == [(b"D", b"first"), *content]


@pytest.mark.skipif(journal._at_end is None, reason="the extension is not built")
@anywhere
@given(records)
def test_records_made_in_c_are_those_of_python(tmp_path: Path, content: list[tuple[bytes, bytes]]) -> None:
    path = tmp_path / "journal"
    offsets: list[list[int]] = [[], []]
    files, lengths = [], []
    for found, made in zip(offsets, (journal._at_end, None), strict=True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(journal, "_at_end", made)
            path.unlink(missing_ok=True)
            writer = begin(path)
            for kind, payload in content:
                writer.append(kind, payload, found.append)
            lengths.append((writer.length, writer._checksum))
            writer.close()
        files.append(path.read_bytes())
    assert files[0] == files[1]
    assert offsets[0] == offsets[1]
    assert lengths[0] == lengths[1] == (len(files[0]), zlib.crc32(files[0]))


@pytest.mark.skipif(journal._at_end is None, reason="the extension is not built")
def test_where_no_record_is_made_in_c(tmp_path: Path) -> None:
    assert journal._at_end is not None
    with (tmp_path / "file").open("wb") as file:
        number, state = file.fileno(), os.fstat(file.fileno())
        place = number, state.st_dev, state.st_ino
        assert journal._at_end(place, b"E", b"", zlib.crc32, 0) is not None
        for other in ((number, state.st_dev, state.st_ino + 1), (number, state.st_dev + 1, state.st_ino)):
            assert journal._at_end(other, b"E", b"", zlib.crc32, 0) is None
    assert journal._at_end(place, b"E", b"", zlib.crc32, 0) is None
    with pytest.raises(TypeError):
        journal._at_end(place, b"E", b"")


def test_offsets_lead_to_the_payloads(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    write(path, (b"E", b"one"), (b"E", b""), (b"S", b"three"))
    content = path.read_bytes()
    for record in read_journal(path):
        assert content[record.offset : record.offset + len(record.payload)] == record.payload


def test_a_tail_torn_at_any_byte(tmp_path: Path) -> None:
    """What was whole before the tear is read; nothing else is."""
    path = tmp_path / "journal"
    write(path, (b"E", b"one" * 5), (b"S", b""), (b"E", b"three\n" * 4))
    whole = path.read_bytes()
    all_records = list(read_journal(path))
    ends = [record.offset + len(record.payload) for record in all_records]
    for length in range(len(MAGIC), len(whole) + 1):
        path.write_bytes(whole[:length])
        assert list(read_journal(path)) == [r for r, end in zip(all_records, ends, strict=True) if end <= length]


def test_any_flipped_bit(tmp_path: Path) -> None:
    """Records before the damage are read, the damaged one never."""
    path = tmp_path / "journal"
    write(path, (b"E", b"one"), (b"S", b"two"))
    whole = path.read_bytes()
    all_records = list(read_journal(path))
    for position in range(len(MAGIC), len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[position] ^= 1 << bit
            path.write_bytes(damaged)
            found = list(read_journal(path))
            assert found == all_records[: len(found)]
            assert len(found) < len(all_records)


@pytest.mark.parametrize(
    "content", [b"", b"{}", MAGIC[:-1], MAGIC.replace(b"1", b"2"), b"\x00" * 100, os.urandom(1000)]
)
def test_a_file_that_is_no_journal(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "journal"
    path.write_bytes(content)
    with pytest.raises(DumpFormatError) as caught:
        list(read_journal(path))
    assert str(caught.value) == f"{path}: not a journal of msprobe_ms (it does not start with {MAGIC!r})"


def test_a_length_beyond_reason_is_not_allocated(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(MAGIC + b"\xff\xff\xff\xff" + b"\0" * 50)
    assert list(read_journal(path)) == []


def test_each_record_is_in_the_file_when_append_returns(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = begin(path, b"")
    for number in range(20):
        journal.append(b"E", b"%d" % number)
        assert read(path)[-1] == (b"E", b"%d" % number)
    journal.close()


def test_threads_do_not_mix_their_records(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = begin(path, b"")

    def append(letter: bytes) -> None:
        for length in range(100):
            journal.append(b"E", letter * length)

    threads = [threading.Thread(target=append, args=(letter,)) for letter in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    content = [payload for kind, payload in read(path) if kind == b"E"]
    assert len(content) == 300
    for letter in (b"a", b"b", b"c"):
        assert [p for p in content if p.startswith(letter)] == [letter * length for length in range(1, 100)]


class FailingWrite:
    """``os.write`` that fails at the n-th call, after writing some bytes of it."""

    def __init__(self, at: int, partly: int, number: int = errno.ENOSPC) -> None:
        self.left = at
        self.partly = partly
        self.number = number
        self.write = os.write

    def __call__(self, file: int, content: bytes) -> int:
        self.left -= 1
        if self.left == 0:
            if self.partly:
                return self.write(file, content[: self.partly])
            raise OSError(self.number, os.strerror(self.number))
        if self.left == -1 and self.partly:
            raise OSError(self.number, os.strerror(self.number))
        return self.write(file, content)


@pytest.mark.parametrize("partly", [0, 1, 5, 9, 12])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_disk_that_is_full_at_the_nth_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, partly: int
) -> None:
    """The record that failed is not in the file; those before and after it are."""
    path = tmp_path / "journal"
    journal = begin(path)
    monkeypatch.setattr(os, "write", FailingWrite(at, partly))
    for number in range(1, 5):
        if number == at:
            with pytest.raises(OSError, match="No space left"):
                journal.append(b"E", b"record %d" % number)
        else:
            journal.append(b"E", b"record %d" % number)
    monkeypatch.undo()
    journal.close()
    assert read(path) == [(b"D", b"first"), *((b"E", b"record %d" % n) for n in range(1, 5) if n != at)]


def test_a_journal_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        begin(tmp_path / "missing" / "journal")
    (tmp_path / "journal").mkdir()
    with pytest.raises(FileExistsError):
        begin(tmp_path / "journal")
    assert [path.name for path in tmp_path.iterdir()] == ["journal"]


def test_whether_it_is_still_in_place(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = begin(path, b"")
    assert journal.is_in_place()
    path.rename(tmp_path / "aside")
    assert not journal.is_in_place()
    begin(path, b"").close()
    assert not journal.is_in_place()
    journal.close()
    assert isinstance(next(read_journal(path)), Record)


def test_half_a_record_that_cannot_be_taken_back_at_once(tmp_path: Path) -> None:
    """The disk is full and then broken; what comes after that is read all the same."""
    journal = begin(tmp_path / "journal")
    with (
        FailingDisk(tmp_path.resolve(), Fault(errno.ENOSPC, frozenset({"write", "truncate"}), stays=True), 1),
        pytest.raises(OSError, match="No space left"),
    ):
        journal.append(b"E", b"lost" * 9)
    assert (tmp_path / "journal").read_bytes().endswith(b"lostlostlostl")
    journal.append(b"E", b"found")
    journal.close()
    assert read(tmp_path / "journal") == [(b"D", b"first"), (b"E", b"found")]
