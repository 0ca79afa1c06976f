"""Those that need the same framework, begun alike, share the process that has imported it."""

from __future__ import annotations

import os
import sys

import pytest

from msprobe_ms.accuracy.execution.shared_nursery import shared_nursery

pytestmark = pytest.mark.processes


def test_one_for_the_same_and_why_one_does_not_begin() -> None:
    environment = dict(os.environ)
    first = shared_nursery(sys.executable, "no framework", environment)
    assert shared_nursery(sys.executable, "no framework", dict(environment)) is first
    other = shared_nursery(sys.executable, "no framework", {**environment, "CUDA_VISIBLE_DEVICES": "1"})
    assert other is not first
    assert first.control() is None
    assert "no framework" in first.last_words() and "known are mindspore" in first.last_words()
    assert first.end(60) == 1 and not first.lives
    assert shared_nursery(sys.executable, "no framework", environment) is not first


def test_a_python_that_is_not_there_is_told() -> None:
    with pytest.raises(FileNotFoundError):
        shared_nursery("/nowhere/python", "pytorch", {})
