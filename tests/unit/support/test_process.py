"""A forked child knows that it is not the process that made an object, and has none of its descriptors."""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from msprobe_ms.support.files import DEFAULT, open_regular
from msprobe_ms.support.folder import Folder
from msprobe_ms.support.process import Descriptor, ThisProcess, no_garbage_collection
from torture.interrupts.places import Interruption, Survey


@pytest.mark.processes
def test_a_forked_child_is_another_process() -> None:
    process = ThisProcess()
    assert process.is_mine
    if (child := os.fork()) == 0:
        os._exit(2 * process.is_mine + ThisProcess().is_mine)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert process.is_mine


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
        return True
    except OSError:
        return False


@pytest.mark.processes
def test_a_forked_child_does_not_have_its_descriptors(tmp_path: Path) -> None:
    """What takes the number in the child is not closed with it."""
    descriptor = Descriptor(partial(os.open, tmp_path, os.O_RDONLY))
    number = descriptor.number
    if (child := os.fork()) == 0:
        gone = not is_open(number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), number)  # other numbers are free as well, where others are alive
        del descriptor
        os._exit(gone and is_open(number))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert is_open(number)


def test_it_is_closed_once_and_with_its_last_reference(tmp_path: Path) -> None:
    descriptor = Descriptor(partial(os.open, tmp_path, os.O_RDONLY))
    number = descriptor.number
    descriptor.close()
    taken = os.open(tmp_path, os.O_RDONLY)
    assert taken == number
    descriptor.close()
    del descriptor
    assert is_open(taken)
    descriptor = Descriptor(partial(int, taken))
    del descriptor
    assert not is_open(taken)


def test_nothing_of_python_runs_as_a_closed_one_is_freed(tmp_path: Path) -> None:
    """What a signal raises there would be lost."""
    descriptor: Any = Descriptor(partial(os.open, tmp_path, os.O_RDONLY))
    descriptor.close()
    as_file: Any = Descriptor(partial(os.open, tmp_path / "file", os.O_WRONLY | os.O_CREAT))
    as_file.as_file("wb").close()
    ran: list[str] = []
    sys.setprofile(lambda frame, event, argument: ran.append(f"{event} {frame.f_code.co_name}"))
    descriptor = None
    as_file = None
    sys.setprofile(None)
    assert not [each for each in ran if each.startswith("call ")]


def test_a_file_that_took_its_number_is_left_alone(tmp_path: Path) -> None:
    """Who becomes a daemon closes whatever is open."""
    descriptor = Descriptor(partial(os.open, tmp_path, os.O_RDONLY))
    number = descriptor.number
    os.close(number)
    with pytest.raises(OSError, match="something else has closed it"):
        _ = descriptor.number
    theirs = os.open(tmp_path / "theirs", os.O_CREAT | os.O_WRONLY)
    assert theirs == number
    with pytest.raises(OSError, match="something else has closed it"):
        _ = descriptor.number
    descriptor.close()
    assert is_open(theirs) and descriptor.number == -1
    os.close(theirs)


def test_none_takes_the_number_of_a_standard_stream_that_is_closed(tmp_path: Path) -> None:
    """The process goes on printing there: into whatever file has the number."""
    held = [os.dup(number) for number in range(3)]
    for number in range(3):
        os.close(number)
    try:
        with Descriptor(partial(os.open, tmp_path, os.O_RDONLY)) as descriptor:
            number = descriptor.number
            free = [not is_open(each) for each in range(3)]
        left = is_open(number)
    finally:
        for standard, each in enumerate(held):
            os.dup2(each, standard)
            os.close(each)
    assert number > 2 and free == [True] * 3 and not left


@pytest.mark.parametrize("after_calls", [False, True])
def test_none_is_lost_wherever_an_interrupt_comes(tmp_path: Path, after_calls: bool) -> None:
    def use() -> None:
        folder = Folder(tmp_path)
        with folder.adding("added") as file:
            Descriptor(partial(os.dup, file.fileno())).close()
        open_regular(tmp_path / "added").close()
        with folder.replacing("added"), DEFAULT.append(tmp_path / "other"):
            pass
        folder.unlink("added")
        folder.close()

    use()
    with (survey := Survey(KeyboardInterrupt, after_calls=after_calls)):
        use()
    places, before = survey.chosen(2), os.listdir("/proc/self/fd")
    assert len(places) > 50
    for place in places:
        interruption = Interruption(KeyboardInterrupt, place)
        try:
            with interruption:
                use()
        except KeyboardInterrupt:
            (tmp_path / "added").unlink(missing_ok=True)
        if interruption.ignored:  # Python raises nothing out of `__del__`
            before = os.listdir("/proc/self/fd")
        assert os.listdir("/proc/self/fd") == before, place


def searches_in_child() -> bool:
    """Whether a child that is forked here searches for cycles."""
    if (child := os.fork()) == 0:
        os._exit(gc.isenabled())
    return bool(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


@pytest.mark.processes
@pytest.mark.parametrize("is_on", [True, False])
def test_a_child_searches_for_cycles_where_another_thread_had_paused_that(is_on: bool) -> None:
    """That thread, which would go on with the search, is not in the child; a pool forks from a thread of its own."""
    was_on = gc.isenabled()
    (gc.enable if is_on else gc.disable)()
    try:
        with ThreadPoolExecutor(1) as another, no_garbage_collection():
            assert (another.submit(searches_in_child).result(), gc.isenabled()) == (is_on, False)
            assert not searches_in_child()  # it ends the pause as its parent does
        assert (searches_in_child(), gc.isenabled()) == (is_on, is_on)
    finally:
        (gc.enable if was_on else gc.disable)()


KEEPS = """
import sys
import numpy as np
from pathlib import Path
from msprobe_ms.support.process import return_large_arrays

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

if "return" in sys.argv:
    return_large_arrays()
before = np.ones(2 << 20)
del before
many, between = [], []
for _ in range(8):
    many.append(np.ones(1 << 20))
    between.append([bytearray(100_000) for _ in range(20)])
held = resident()
del many
print(held - resident())
"""


@pytest.mark.processes
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library keeps other memory")
def test_the_memory_of_large_arrays_is_given_back_where_smaller_ones_lie_behind() -> None:
    """Without it glibc keeps them in most processes, though not in all."""
    given_back = subprocess.run([sys.executable, "-c", KEEPS, "return"], check=True, capture_output=True).stdout
    assert int(given_back) > 60 << 20
