"""Tensor files: contents that were written before become further names of one file."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msprobe_ms.arrays.npy import npy_writer, write_npy
from msprobe_ms.dump.writing.tensor_files import MarkedWrite, Stored, TensorFiles
from msprobe_ms.support.folder import Folder

ZEROS = np.zeros(300_000, np.float64)  # more than is compared at a time
MARKS = "float64", ZEROS.shape, 0.0


@pytest.fixture
def files(tmp_path: Path) -> Iterator[TensorFiles]:
    folder = Folder(tmp_path)
    yield TensorFiles(folder)
    folder.close()


def put(files: TensorFiles, name: str, array: np.ndarray, marks: Any = MARKS) -> None:
    files.write(name, MarkedWrite(partial(write_npy, array=array), marks))


def inodes(folder: Path) -> int:
    return len({file.stat().st_ino for file in folder.iterdir()})


def test_contents_met_again_are_further_names_of_one_file(files: TensorFiles, tmp_path: Path) -> None:
    for number in range(3):
        put(files, f"{number}.npy", ZEROS)
    assert inodes(tmp_path) == 1 and len(list(tmp_path.iterdir())) == 3
    for file in tmp_path.iterdir():
        assert np.array_equal(np.load(file), ZEROS)


@pytest.mark.parametrize("place", [0, 150_000, -1])
def test_bytes_decide_and_not_what_is_alike(files: TensorFiles, tmp_path: Path, place: int) -> None:
    other = ZEROS.copy()
    other[place] = -0.0  # equal in value and in all statistics
    put(files, "a.npy", ZEROS)
    put(files, "b.npy", other)
    assert inodes(tmp_path) == 2
    assert np.array_equal(np.signbit(np.load(tmp_path / "b.npy")), np.signbit(other))


def put_in_place(files: TensorFiles, name: str, array: np.ndarray) -> None:
    """As tensors are written whose elements lie one behind the other in memory."""
    writer = npy_writer(array.dtype.str, array.shape)
    stored = Stored(writer.rest + array.nbytes, writer.begin, array.ctypes.data, array.nbytes)
    files.write(name, MarkedWrite(partial(write_npy, array=array), MARKS, stored))


@pytest.mark.parametrize("place", [None, 0, 150_000, -1])
def test_elements_are_compared_where_they_lie(files: TensorFiles, tmp_path: Path, place: int | None) -> None:
    other = ZEROS.copy()
    if place is not None:
        other[place] = -0.0
    put_in_place(files, "a.npy", ZEROS)
    put_in_place(files, "b.npy", other)
    assert inodes(tmp_path) == (1 if place is None else 2)
    assert (tmp_path / "b.npy").read_bytes()[-other.nbytes :] == other.tobytes()


@pytest.mark.parametrize(
    "change", [lambda a: os.truncate(a, 1000), os.unlink, lambda a: a.write_bytes(a.read_bytes() + b"1")]
)
def test_a_file_that_was_cut_or_removed_holds_nothing_in_memory(
    files: TensorFiles, tmp_path: Path, change: Callable[[Path], Any]
) -> None:
    put_in_place(files, "a.npy", ZEROS)
    change(tmp_path / "a.npy")
    put_in_place(files, "b.npy", ZEROS)
    assert np.array_equal(np.load(tmp_path / "b.npy"), ZEROS)
    assert (tmp_path / "b.npy").stat().st_nlink == 1


def test_files_of_other_lengths_are_other_files(files: TensorFiles, tmp_path: Path) -> None:
    for name, data in (("a", b"12"), ("b", b"123"), ("c", b"1"), ("d", b"")):
        files.write(name, MarkedWrite(lambda file, data=data: file.write(data), MARKS))  # type: ignore[misc]
        assert (tmp_path / name).read_bytes() == data
    assert inodes(tmp_path) == 4


def test_a_name_that_is_there_is_replaced(files: TensorFiles, tmp_path: Path) -> None:
    put(files, "a.npy", ZEROS)
    put(files, "b.npy", ZEROS + 1, "other")
    put(files, "b.npy", ZEROS)
    assert np.array_equal(np.load(tmp_path / "b.npy"), ZEROS)
    put(files, "a.npy", ZEROS + 1, "third")
    put(files, "c.npy", ZEROS)  # known is the name of what is something else by now, or the one that still holds it
    assert np.array_equal(np.load(tmp_path / "c.npy"), ZEROS)


def test_what_has_been_removed_or_changed_is_written_anew(files: TensorFiles, tmp_path: Path) -> None:
    put(files, "a.npy", ZEROS)
    (tmp_path / "a.npy").unlink()
    put(files, "b.npy", ZEROS)
    (tmp_path / "b.npy").write_bytes(b"edited")
    put(files, "c.npy", ZEROS)
    assert np.array_equal(np.load(tmp_path / "c.npy"), ZEROS)
    assert (tmp_path / "b.npy").read_bytes() == b"edited"


@pytest.mark.parametrize(("reason", "tried"), [(errno.EPERM, 1), (errno.EMLINK, 2)])
def test_where_no_links_can_be_had_there_are_files(
    files: TensorFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: int, tried: int
) -> None:
    asked = []

    def refuse(*names: Any, **_: Any) -> None:
        asked.append(names)
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr(os, "link", refuse)
    for number in range(3):
        put(files, f"{number}.npy", ZEROS)
    assert inodes(tmp_path) == 3 and len(asked) == tried


def test_a_write_that_fails_leaves_nothing(files: TensorFiles, tmp_path: Path) -> None:
    def fails(file: Any) -> None:
        file.write(b"half a tensor")
        raise RuntimeError("no more")

    for _ in range(2):
        with pytest.raises(RuntimeError):
            files.write("a.npy", MarkedWrite(fails, MARKS))
    assert list(tmp_path.iterdir()) == []


def test_what_a_signal_handler_raises_meanwhile_arrives(files: TensorFiles) -> None:
    """A time limit of the script's is an OSError, and nobody raises it again."""

    def handler(number: int, frame: object) -> None:
        raise TimeoutError("time is up")

    def interrupted(file: Any) -> None:
        signal.raise_signal(signal.SIGUSR1)

    put(files, "a.npy", ZEROS)
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(TimeoutError):
            files._holds("a.npy", interrupted)
    finally:
        signal.signal(signal.SIGUSR1, before)
