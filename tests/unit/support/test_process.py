"""A forked child knows that it is not the process that made an object, and has none of its descriptors."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from msprobe_ms.support.process import Descriptor, ThisProcess


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
    descriptor = Descriptor(os.open(tmp_path, os.O_RDONLY))
    number = descriptor.number
    if (child := os.fork()) == 0:
        gone = not is_open(number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), number)  # other numbers are free as well, where others are alive
        del descriptor
        os._exit(gone and is_open(number))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert is_open(number)


def test_it_is_closed_once_and_with_its_last_reference(tmp_path: Path) -> None:
    descriptor = Descriptor(os.open(tmp_path, os.O_RDONLY))
    number = descriptor.number
    descriptor.close()
    taken = os.open(tmp_path, os.O_RDONLY)
    assert taken == number
    descriptor.close()
    del descriptor
    assert is_open(taken)
    descriptor = Descriptor(taken)
    del descriptor
    assert not is_open(taken)
