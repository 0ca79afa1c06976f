"""What every test may ask for; frameworks are imported only by tests that use them."""

from __future__ import annotations

import gc
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Before any framework is imported, and for every process that a test starts: its nets are so small that threads of one
# operation wait for each other longer than they compute, and files run side by side.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Messages are in English, whatever the locale of the machine; tests of other languages name theirs.
os.environ["MSPROBE_LANG"] = "en"

import hypothesis
import numpy as np
import pytest
from forked import FOLDER, OWNER
from hypothesis.internal.conjecture import providers
from thorough import measured_cases

from msprobe_ms.recording.debugger import BaseDebugger
from msprobe_ms.support import workers
from msprobe_ms.support.log import logger

# Importing the frameworks and collecting the tests leave no garbage.
gc.disable()

# A busy machine is no reason to fail.
# The suite has to stay short; MSPROBE_EXAMPLES=1000 asks for more of each property.
# The same examples in each run, so that a change is what makes a test fail; `make fuzz` asks for others, and for more.
_EXAMPLES = os.environ.get("MSPROBE_EXAMPLES")
hypothesis.settings.register_profile(
    "patient", deadline=None, max_examples=int(_EXAMPLES or "8"), derandomize=_EXAMPLES is None
)
hypothesis.settings.load_profile("patient")
if _EXAMPLES is None and hasattr(providers, "_get_local_constants"):
    # Nor may they depend on which modules other tests have imported: it would draw constants of the source of each.
    providers._get_local_constants = lambda: providers._local_constants


#: Folders with long files before those with short ones, so that no worker is left alone with a long one.
_ORDER = ("process", "installs", "frameworks", "attacks", "browser", "site", "unit")
#: The file whose tests run.
_FILE = pytest.StashKey[Path]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="whole tables of cases, of which a sample is tried else")


def pytest_configure(config: pytest.Config) -> None:
    """Let each worker collect another folder first: what none has compiled yet, one compiles for all."""
    if FOLDER not in os.environ:  # the workers come later, and have this process's environment
        folder = tempfile.TemporaryDirectory()
        os.environ.update({FOLDER: folder.name, OWNER: str(os.getpid())})
        config.add_cleanup(folder.cleanup)
    worker = int(getattr(config, "workerinput", {"workerid": "gw0"})["workerid"].removeprefix("gw"))
    if all(Path(each).is_dir() for each in config.args):
        first = worker % len(config.args)
        config.args[:] = config.args[first:] + config.args[:first]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the folders of tests in order, and their files, which is the same for all workers."""
    if not config.getoption("thorough"):
        measured = measured_cases().difference(config.args)  # a case that is named is run
        left_out = {item for item in items if item.get_closest_marker("thorough") or item.nodeid in measured}
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    folders = Path(__file__).parent
    items.sort(key=lambda item: (_ORDER.index(item.path.relative_to(folders).parts[0]), item.path))


def pytest_collection_finish() -> None:
    """Launch kernels one by one, and leave the tests themselves out of every garbage collection.

    Once MindSpore has run an operator, launch_blocking has no effect on gradients any more. What a test sees of them
    must not depend on which tests ran before it in the same process.
    """
    if "mindspore" in sys.modules:
        sys.modules["mindspore"].runtime.launch_blocking()
    gc.freeze()
    gc.set_threshold(100_000)
    gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave what earlier files have imported, some hundred thousand objects, out of every garbage collection."""
    if item.config.stash.get(_FILE, None) != item.path:
        item.config.stash[_FILE] = item.path
        gc.collect()
        gc.freeze()


@pytest.fixture(autouse=True)
def seeded() -> None:
    """The same random figures in every run and every order of tests."""
    np.random.seed(20)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(20)


@pytest.fixture(autouse=True)
def released_debuggers() -> Iterator[None]:
    """A debugger says at its end what came of it, which is that of its process; no later test hears of it."""
    yield
    debuggers = BaseDebugger._debuggers
    for each in reversed(list(debuggers._open.values())):
        each._ended = True
        each._runs.remove()
        if each._gradients is not None:
            each._gradients.end()
        debuggers.forget(each)


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
