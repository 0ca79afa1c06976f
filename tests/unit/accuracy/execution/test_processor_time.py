"""A process that is to answer is given the time that a busy machine does not let it run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import numpy as np
import pytest

from msprobe_ms.accuracy.execution.companion import Companion
from msprobe_ms.accuracy.execution.messages import REFERENCE, Ran, Request, Role
from msprobe_ms.accuracy.execution.processor_time import processor_seconds, waits_for_processor
from msprobe_ms.arrays.typed import TypedArray
from msprobe_ms.frameworks.api_calls import Arguments

pytestmark = pytest.mark.processes


@contextmanager
def running(code: str) -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def test_what_runs_and_what_sleeps_are_told_apart() -> None:
    with running("while True: pass") as busy, running("import time; time.sleep(60)") as asleep:
        until = time.monotonic() + 60
        while processor_seconds(busy) < 0.2 and time.monotonic() < until:
            time.sleep(0.05)
        while waits_for_processor(asleep) and time.monotonic() < until:
            time.sleep(0.05)
        assert waits_for_processor(busy) and processor_seconds(busy) >= 0.2
        assert not waits_for_processor(asleep)
    assert processor_seconds(busy) == 0 and not waits_for_processor(busy), "it has ended"


@pytest.mark.skipif(find_spec("torch") is None, reason="the process that answers needs it")
def test_a_busy_machine_costs_no_answer() -> None:
    companion = Companion(Role(REFERENCE, "pytorch", None))
    large = TypedArray("float64", np.ones((900, 900)))
    request = Request("Torch", "matmul", (Arguments((large, large), {}),), (None,), 0, {})
    companion.ask(request)
    assert isinstance(companion.answer(300), Ran)
    assert companion._child is not None
    processor = {min(os.sched_getaffinity(0))}
    os.sched_setaffinity(companion._child.id, processor)
    os.setpriority(os.PRIO_PROCESS, companion._child.id, 19)
    hog = f"import os, time; os.sched_setaffinity(0, {processor}); end = time.time() + 4\nwhile time.time() < end: pass"
    with running(hog) as process:
        while processor_seconds(process) < 0.3:
            time.sleep(0.05)
        companion.ask(request)
        assert isinstance(companion.answer(1), Ran)
    companion.close()
