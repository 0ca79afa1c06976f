"""Tensor files: contents that were written before become further names of one file."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msprobe_ms.arrays.npy import npy_writer, write_npy
from msprobe_ms.dump.writing import tensor_files
from msprobe_ms.dump.writing.tensor_files import MarkedBytes, MarkedWrite, TensorFiles
from msprobe_ms.support.files import Permissions
from msprobe_ms.support.folder import Folder

ZEROS = np.zeros(300_000, np.float64)  # more than is compared at a time
MARKS = "float64", ZEROS.shape, 0.0


@pytest.fixture
def files(tmp_path: Path) -> Iterator[TensorFiles]:
    folder = Folder(tmp_path)
    yield TensorFiles(folder)
    folder.close()


Put = Callable[..., None]


def by_python(files: TensorFiles, name: str, array: np.ndarray, marks: Any = MARKS) -> None:
    """Put an array into a file by what writes it into any."""
    files.write(name, MarkedWrite(partial(write_npy, array=array), marks))


def as_it_lies(files: TensorFiles, name: str, array: np.ndarray, marks: Any = MARKS) -> None:
    """The same from where its elements lie, as those of a framework's tensor: in C, where that is built."""
    writer, data = npy_writer(array.dtype.str, array.shape), memoryview(array).cast("B")
    files.write(name, MarkedBytes(writer, array.ctypes.data, data, marks))


@pytest.fixture(params=["by Python", "as it lies", "as it lies, without a compiler"])
def put(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Put an array into a file."""
    if request.param == "as it lies" and not tensor_files._is_built:
        pytest.skip("it was installed without a compiler")
    monkeypatch.setattr(tensor_files, "_is_built", request.param == "as it lies")
    return by_python if request.param == "by Python" else as_it_lies


def inodes(folder: Path) -> int:
    return len({file.stat().st_ino for file in folder.iterdir()})


def test_contents_met_again_are_further_names_of_one_file(put: Put, files: TensorFiles, tmp_path: Path) -> None:
    for number in range(3):
        put(files, f"{number}.npy", ZEROS)
    assert inodes(tmp_path) == 1 and len(list(tmp_path.iterdir())) == 3
    for file in tmp_path.iterdir():
        assert np.array_equal(np.load(file), ZEROS)


@pytest.mark.parametrize("place", [0, 150_000, -1])
def test_bytes_decide_and_not_what_is_alike(put: Put, files: TensorFiles, tmp_path: Path, place: int) -> None:
    other = ZEROS.copy()
    other[place] = -0.0  # equal in value and in all statistics
    put(files, "a.npy", ZEROS)
    put(files, "b.npy", other)
    assert inodes(tmp_path) == 2
    assert np.array_equal(np.signbit(np.load(tmp_path / "b.npy")), np.signbit(other))


def test_files_of_other_lengths_are_other_files(files: TensorFiles, tmp_path: Path) -> None:
    for name, data in (("a", b"12"), ("b", b"123"), ("c", b"1"), ("d", b"")):
        files.write(name, MarkedWrite(lambda file, data=data: file.write(data), MARKS))  # type: ignore[misc]
        assert (tmp_path / name).read_bytes() == data
    assert inodes(tmp_path) == 4


def test_a_name_that_is_there_is_replaced(put: Put, files: TensorFiles, tmp_path: Path) -> None:
    put(files, "a.npy", ZEROS)
    put(files, "b.npy", ZEROS + 1, "other")
    put(files, "b.npy", ZEROS)
    assert np.array_equal(np.load(tmp_path / "b.npy"), ZEROS)
    put(files, "a.npy", ZEROS + 1, "third")
    put(files, "c.npy", ZEROS)  # known is the name of what is something else by now, or the one that still holds it
    assert np.array_equal(np.load(tmp_path / "c.npy"), ZEROS)


def test_what_has_been_removed_or_changed_is_written_anew(put: Put, files: TensorFiles, tmp_path: Path) -> None:
    put(files, "a.npy", ZEROS)
    (tmp_path / "a.npy").unlink()
    put(files, "b.npy", ZEROS)
    (tmp_path / "b.npy").write_bytes(b"edited")
    put(files, "c.npy", ZEROS)
    assert np.array_equal(np.load(tmp_path / "c.npy"), ZEROS)
    assert (tmp_path / "b.npy").read_bytes() == b"edited"


@pytest.mark.parametrize(("reason", "tried"), [(errno.EPERM, 1), (errno.EMLINK, 2)])
def test_where_no_links_can_be_had_there_are_files(
    put: Put, files: TensorFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: int, tried: int
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


def test_what_a_signal_handler_raises_meanwhile_arrives(put: Put, files: TensorFiles) -> None:
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


def test_a_disk_that_takes_no_more_is_an_error_and_leaves_nothing(put: Put, files: TensorFiles, tmp_path: Path) -> None:
    _, most = limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ZEROS.nbytes // 2, most))
    try:
        with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
            put(files, "a.npy", ZEROS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []
    put(files, "a.npy", ZEROS)
    assert np.array_equal(np.load(tmp_path / "a.npy"), ZEROS)


def test_a_folder_that_is_gone_is_an_error(put: Put, files: TensorFiles) -> None:
    with pytest.raises(FileNotFoundError):
        put(files, "gone/a.npy", ZEROS)


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(put: Put, files: TensorFiles, tmp_path: Path) -> None:
    put(files, "a.npy", ZEROS)
    (tmp_path / "a.npy").unlink()
    os.mkfifo(tmp_path / "a.npy")
    put(files, "b.npy", ZEROS)
    assert np.array_equal(np.load(tmp_path / "b.npy"), ZEROS)


@pytest.mark.parametrize(("permissions", "mode"), [(Permissions(), 0o640), (Permissions.of_files(0o666), 0o666)])
def test_files_have_the_mode_that_is_asked_for(put: Put, tmp_path: Path, permissions: Permissions, mode: int) -> None:
    folder, before = Folder(tmp_path, permissions), os.umask(0o022)
    try:
        put(TensorFiles(folder), "a.npy", ZEROS)
    finally:
        os.umask(before)
        folder.close()
    assert (tmp_path / "a.npy").stat().st_mode & 0o777 == mode


def test_no_descriptor_stays_open(put: Put, files: TensorFiles) -> None:
    put(files, "a.npy", ZEROS)
    before = os.listdir("/proc/self/fd")
    for number in range(3):
        put(files, f"{number}.npy", ZEROS + number)
        put(files, f"{number}b.npy", ZEROS)
        with pytest.raises(FileNotFoundError):
            put(files, "gone/a.npy", ZEROS - 1, "other")
    assert os.listdir("/proc/self/fd") == before
