"""A forked child knows that it is not the process that made an object."""

from __future__ import annotations

import os

import pytest

from msprobe_ms.support.process import ThisProcess


@pytest.mark.processes
def test_a_forked_child_is_another_process() -> None:
    process = ThisProcess()
    assert process.is_mine
    if (child := os.fork()) == 0:
        os._exit(2 * process.is_mine + ThisProcess().is_mine)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert process.is_mine
