"""A folder held open is that folder wherever it goes, and no other that comes under its name."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import threading
from pathlib import Path

import pytest

from msprobe_ms.support.files import Permissions
from msprobe_ms.support.folder import Folder
from msprobe_ms.support.process import ClosedError


def put(folder: Folder, name: str, content: bytes) -> None:
    with folder.replacing(name) as file:
        file.write(content)


def add(folder: Folder, name: str, content: bytes) -> None:
    with folder.adding(name) as file:
        file.write(content)


def files(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / "a").mkdir()
    return Folder(tmp_path / "a", Permissions.of_files(0o600))


def test_files_go_into_the_folder_that_was_opened(folder: Folder, tmp_path: Path) -> None:
    put(folder, "one", b"1")
    (tmp_path / "a").rename(tmp_path / "b")
    (tmp_path / "a").mkdir()
    put(folder, "two", b"2")
    add(folder, "three", b"3")
    folder.make_folder("inner")
    folder.make_folder("inner")
    put(folder, "inner/four", b"4")
    with folder.append("one") as file:
        file.write(b"more")
    with folder.open("one") as file:
        assert file.read() == b"1more"
    assert folder.stat("two").st_size == 1
    assert folder.path == tmp_path / "b"
    assert files(tmp_path) == {"b/one": b"1more", "b/two": b"2", "b/three": b"3", "b/inner/four": b"4"}
    assert {each.stat().st_mode & 0o777 for each in (tmp_path / "b").rglob("*")} == {0o600, 0o700}
    folder.rename(tmp_path / "c")
    assert (folder.path, [path.name for path in (tmp_path / "a").iterdir()]) == (tmp_path / "c", [])


def test_adding_replaces_nothing(folder: Folder, tmp_path: Path) -> None:
    add(folder, "one", b"1")
    with pytest.raises(FileExistsError):
        add(folder, "one", b"2")
    assert files(tmp_path) == {"a/one": b"1"}


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EIO])
def test_a_disk_without_hard_links(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    test_adding_replaces_nothing(folder, tmp_path)


@pytest.mark.parametrize("call", ["unlink", "open"])
def test_what_cannot_be_added_leaves_nothing(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Whichever call the disk refuses."""
    real, refused = getattr(os, call), []

    def refuse_once(*arguments: object, **keys: object) -> object:
        if not refused:
            refused.append(call)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(*arguments, **keys)

    monkeypatch.setattr(os, call, refuse_once)
    with pytest.raises(OSError, match="Input/output error"):
        add(folder, "one", b"1")
    assert list((tmp_path / "a").iterdir()) == []


@pytest.mark.processes
def test_a_folder_is_claimed_by_one_process(folder: Folder, tmp_path: Path) -> None:
    """By that as often as it likes; in a forked child it is the parent's."""

    def claimed_in_child() -> bool:
        if (child := os.fork()) == 0:
            os._exit(Folder(tmp_path / "a").claim())
        return bool(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    again = Folder(tmp_path / "a")
    assert claimed_in_child()
    assert folder.claim() and again.claim()
    assert not claimed_in_child()
    folder.close()
    assert not claimed_in_child()
    again.close()
    assert claimed_in_child()


def test_what_was_begun_before_it_is_closed_is_finished(folder: Folder, tmp_path: Path) -> None:
    """As a signal handler closes it in the middle of writing."""
    with folder.replacing("one") as file:
        file.write(b"1")
        folder.close()
    assert files(tmp_path) == {"a/one": b"1"}
    for action in (lambda: put(folder, "two", b"2"), lambda: folder.append("two"), lambda: folder.stat("one")):
        with pytest.raises(OSError, match="the folder is closed"):
            action()
    assert folder.path == tmp_path / "a"
    assert not [place for place in open_places() if place.startswith(str(tmp_path))]


def open_places() -> list[str]:
    numbers = [number for number in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{number}")]
    return [os.readlink(f"/proc/self/fd/{number}") for number in numbers]


def test_a_folder_that_is_removed_is_not_made_again(folder: Folder, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "a")
    for action in (lambda: put(folder, "one", b"1"), lambda: folder.make_folder("inner"), lambda: folder.append("one")):
        with pytest.raises(FileNotFoundError):
            action()
    with pytest.raises(FileNotFoundError):
        folder.rename(tmp_path / "b")
    assert folder.path == tmp_path / "a"
    assert list(tmp_path.iterdir()) == []


def test_removing_takes_what_is_named(folder: Folder, tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        put(folder, name, b"")
    folder.make_folder("inner")
    put(folder, "inner/four", b"")
    (tmp_path / "a").rename(tmp_path / "b")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one").write_bytes(b"another's")
    folder.remove(["one", "two", "none"], "inner")
    assert files(tmp_path) == {"a/one": b"another's", "b/three": b""}
    last = Folder(tmp_path / "b")
    last.remove(["three"], "inner")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_closing_while_another_thread_writes_lets_nothing_into_the_next_folder(tmp_path: Path) -> None:
    """The next one gets the number of the one before, as soon as that is free."""
    opened, over, strays = [Folder(tmp_path)], threading.Event(), list[Exception]()

    def write() -> None:
        while not over.is_set():
            folder = opened[-1]
            try:
                folder.make_folder("inner")
                folder.append(folder.path.name).close()
                folder.stat("inner")
            except ClosedError:
                continue
            except Exception as error:
                strays.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=write) for _ in range(3)]
    try:
        for thread in threads:
            thread.start()
        for number in range(200):
            (tmp_path / str(number)).mkdir()
            opened.append(Folder(tmp_path / str(number)))
            opened[-2].close()
    finally:
        over.set()
        sys.setswitchinterval(interval)
        for thread in threads:
            thread.join()
    assert strays == []
    assert {(path.parent.name, path.name) for path in tmp_path.glob("*/*") if path.is_file()} <= {
        (str(number), str(number)) for number in range(200)
    }
