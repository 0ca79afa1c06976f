"""Choose the cases that ``make test`` leaves to ``make thorough``, and write them to ``tests/thorough.txt``.

``python tools/sample_tests.py [FOLDER]`` runs every test once, under coverage (``pip install coverage``; half an hour
on two cores), and keeps what it measured in FOLDER, of which another run chooses again. A case of a table is left out,
the costliest first, if others run each of its lines and another case of the same test stays.
"""

from __future__ import annotations

import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests" / "thorough.txt"
#: Seconds of a processor, under coverage, below which a case is not worth a line of the list.
WORTH = 0.15
#: What these try matters, not which lines it runs.
ALWAYS = ("tests/attacks/", "tests/frameworks/mindspore/test_invariants.py")
HEAD = """\
# Cases that `make test` leaves to `make thorough`: others run each of their lines, and another case of the test stays.
# Written by tools/sample_tests.py.
"""

_SETTINGS = """\
[run]
source_pkgs = msprobe_ms
data_file = {folder}/data
parallel = true
context = ${{PYTEST_CURRENT_TEST-}}
disable_warnings = module-not-measured
"""
#: So that processes that tests begin are measured as well.
_PATCHES = """\
patch =
    subprocess
    _exit
    fork
"""


# -- measuring, within pytest ------------------------------------------------------------------------------------------


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Say whose lines are run, and note what the test cost."""
    began = _processor_seconds()
    measured = _measured(item)
    yield
    with suppress(Exception):
        measured.switch_context("")
    folder, worker = Path(os.environ["SAMPLE_TESTS"]), os.environ.get("PYTEST_XDIST_WORKER", "")
    with (folder / f"costs{worker}.jsonl").open("a") as file:
        print(json.dumps([item.nodeid, _processor_seconds() - began]), file=file)


#: The file of tests that is measured, and with what.
_now: tuple[Path, Any] | None = None


def _measured(item: pytest.Item) -> Any:
    """What measures this test. Each file has data of its own: some tests take from a process what it writes with."""
    global _now
    import coverage

    if _now is None or _now[0] != item.path:
        if (before := coverage.Coverage.current()) is not None:
            before.stop()
            with suppress(coverage.CoverageException):
                before.save()
        folder = Path(os.environ["SAMPLE_TESTS"])
        suffix = f"{os.getpid()}.{len(list(folder.iterdir()))}"
        _now = item.path, coverage.Coverage(config_file=str(folder / "one_file"), data_suffix=suffix)
        _now[1].start()
    with suppress(coverage.CoverageException):
        _now[1].switch_context(item.nodeid)
    return _now[1]


def _processor_seconds() -> float:
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    forked = getattr(sys.modules.get("forked"), "seconds", ())
    return sum(each.ru_utime + each.ru_stime for each in used) + sum(forked)


def measure(folder: Path) -> None:
    """Run every test; data and costs lie in ``folder`` then."""
    settings = folder / "coveragerc"
    settings.write_text(_SETTINGS.format(folder=folder) + _PATCHES)
    (folder / "one_file").write_text(_SETTINGS.format(folder=folder))
    paths = os.pathsep.join((str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")))
    command = [sys.executable, "-m", "coverage"]
    tests = ["-q", "-n", "3", "--dist", "loadfile", "--no-loadscope-reorder", "-p", "sample_tests"]
    environment = {**os.environ, "PYTHONPATH": paths, "SAMPLE_TESTS": str(folder)}
    subprocess.run([*command, "run", f"--rcfile={settings}", "-m", "pytest", *tests], env=environment, cwd=ROOT)
    subprocess.run([*command, "combine", "-q", f"--rcfile={settings}"], check=True, cwd=ROOT)


# -- choosing ----------------------------------------------------------------------------------------------------------


def lines_of(data: Path) -> dict[str, set[tuple[int, int]]]:
    """Test → numbers of the files and lines that it ran, in whichever process; "" for those of no test."""
    from coverage.numbits import numbits_to_nums

    found: dict[str, set[tuple[int, int]]] = defaultdict(set)
    with closing(sqlite3.connect(data)) as database:
        names = dict(database.execute("select id, context from context"))
        for file, context, bits in database.execute("select file_id, context_id, numbits from line_bits"):
            found[_test(names[context])].update((file, line) for line in numbits_to_nums(bits))
    return found


def _test(context: str) -> str:
    """The test that a context of coverage names: by what a process was told, else by what its environment said."""
    for phase in ("setup", "call", "teardown"):
        before, sign, told = context.partition(f" ({phase})")
        if sign:
            return told.removeprefix("|") or before
    return context


def chosen(costs: dict[str, float], lines: dict[str, set[tuple[int, int]]]) -> list[str]:
    """The cases to leave out, in order."""
    times = Counter(line for ran in lines.values() for line in ran)
    siblings = Counter(test.partition("[")[0] for test in costs)
    left_out = []
    for test in sorted(costs, key=lambda each: -costs[each]):
        function, _, case = test.partition("[")
        if costs[test] < WORTH or not case or siblings[function] < 2 or test not in lines or test.startswith(ALWAYS):
            continue
        if all(times[line] > 1 for line in lines[test]):
            times.subtract(lines[test])
            siblings[function] -= 1
            left_out.append(test)
    return sorted(left_out)


def costs_of(files: Iterable[Path]) -> dict[str, float]:
    """Test → seconds of a processor, those of its processes included."""
    return dict(json.loads(line) for file in files for line in file.read_text().splitlines())


def main() -> None:
    """Measure, unless that was done, and write the list."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()).absolute()
    if not (folder / "data").exists():
        folder.mkdir(parents=True, exist_ok=True)
        measure(folder)
    costs = costs_of(folder.glob("costs*.jsonl"))
    left_out = chosen(costs, lines_of(folder / "data"))
    LIST.write_text(HEAD + "".join(f"{each}\n" for each in left_out), encoding="utf-8")
    saved = sum(costs[each] for each in left_out)
    print(f"{len(left_out)} of {len(costs)} cases, {saved:.0f} of {sum(costs.values()):.0f} s of a processor")


if __name__ == "__main__":
    main()
