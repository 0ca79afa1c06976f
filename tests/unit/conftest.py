"""The fast lane: no test below this folder imports a framework; those that start processes bear the mark that says so.

The others are marked fast: `make check` runs them, and `make test` while it installs the frameworks.
"""

from __future__ import annotations

import multiprocessing.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy.testing  # noqa: F401  its import asks a process for the processor
import pytest

FRAMEWORKS = {"mindspore", "torch"}
STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system"}

#: What the running test imported and started; None between tests.
_imported: set[str] | None = None
_started: set[str] | None = None


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _imported is not None and event == "import" and arguments[0] in FRAMEWORKS:
        _imported.add(arguments[0])
    if _started is not None and event in STARTS:
        _started.add(event)


sys.addaudithook(_audit)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Read no file of which every test is fast where those are left out: each worker reads them all."""
    if config.option.markexpr != "not fast" or not collection_path.name.startswith("test_"):
        return None
    return True if collection_path.is_file() and "processes" not in collection_path.read_text("utf-8") else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the fast lane."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and item.get_closest_marker("processes") is None:
            item.add_marker("fast")


@pytest.fixture(autouse=True)
def alone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The test may import no framework, and starts processes if and only if it is marked so."""
    global _imported, _started
    imported, started = _imported, _started = set[str](), set[str]()
    spawn = multiprocessing.util.spawnv_passfds

    def spawn_and_tell(*arguments: Any) -> Any:  # it raises no event
        started.add("spawn")
        return spawn(*arguments)

    monkeypatch.setattr(multiprocessing.util, "spawnv_passfds", spawn_and_tell)
    yield
    _imported = _started = None
    assert not imported, f"tests/unit is without frameworks: {imported}"
    marked = request.node.get_closest_marker("processes") is not None
    assert bool(started) == marked, f"{started or 'no process'}: mark it with processes, or do not"


@pytest.fixture(autouse=True, scope="session")
def without_frameworks(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where only this folder's tests run, no test module has imported a framework either."""
    yield
    if all(Path(__file__).parent in item.path.parents for item in request.session.items):
        assert not FRAMEWORKS & set(sys.modules)
