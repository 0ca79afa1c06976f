"""What every test may ask for; frameworks are imported only by tests that use them."""

from __future__ import annotations

import atexit
import gc
import logging
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

# Before any framework is imported, and for every process that a test starts: its nets are so small that threads of one
# operation wait for each other longer than they compute, and files run side by side.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis
import numpy as np
import pytest

from msprobe_ms.recording import debugger
from msprobe_ms.support import workers
from msprobe_ms.support.log import logger

# Importing the frameworks and collecting the tests leave no garbage.
gc.disable()

# A busy machine is no reason to fail.
# The suite has to stay short; MSPROBE_EXAMPLES=1000 asks for more of each property.
# The same examples in each run, so that a change is what makes a test fail; `make fuzz` asks for others, and for more.
_EXAMPLES = os.environ.get("MSPROBE_EXAMPLES")
hypothesis.settings.register_profile(
    "patient", deadline=None, max_examples=int(_EXAMPLES or "20"), derandomize=_EXAMPLES is None
)
hypothesis.settings.load_profile("patient")


#: Folders with long files before those with short ones, so that no worker is left alone with a long one.
_ORDER = ("process", "frameworks", "attacks", "browser", "unit")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the folders of tests in order."""
    folders = Path(__file__).parent
    items.sort(key=lambda item: _ORDER.index(item.path.relative_to(folders).parts[0]))


def pytest_collection_finish() -> None:
    """Leave the frameworks and the tests themselves, half a million objects, out of every garbage collection."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def seeded() -> None:
    """The same random figures in every run and every order of tests."""
    np.random.seed(20)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(20)


@pytest.fixture(autouse=True)
def released_debuggers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A debugger stays until its process ends, with ten thousand objects; here it goes with its test.

    Of hundreds of them, each of the garbage collections with which MindSpore begins to compile takes up to a second.
    """
    registered: list[Callable[[], object]] = []

    def register(function: Callable[[], object]) -> None:
        registered.append(function)
        atexit.register(function)

    monkeypatch.setattr(debugger, "atexit", SimpleNamespace(register=register, unregister=atexit.unregister))
    yield
    for function in registered:
        atexit.unregister(function)


@pytest.fixture
def dump_path(tmp_path: Path) -> Path:
    """Where a test may dump to; not there yet, as in a user's first run."""
    return tmp_path / "dump"


@pytest.fixture
def one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparisons of several ranks start one process, for tests to which their number is nothing."""
    monkeypatch.setattr(workers, "_cores", lambda: 1)


@pytest.fixture
def ms() -> Any:
    """MindSpore in PyNative mode; kernels are launched one by one, many times faster on few cores."""
    import mindspore

    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    mindspore.runtime.launch_blocking()
    return mindspore


class Warnings(logging.Handler):
    """The warnings of this package."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@pytest.fixture
def warnings() -> Iterator[list[str]]:
    handler = Warnings()
    logger.addHandler(handler)
    yield handler.texts
    logger.removeHandler(handler)
