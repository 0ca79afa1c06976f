"""Kill ``msprobe acc_check`` again and again while it judges: its tables become those of a run that nobody killed.

python -m torture.killed_checks                             50 kills with one worker, 50 with two; some minutes
python -m torture.killed_checks --kills 10 --workers 1
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from torture.harness import Outcome, Tool, environment, main

#: One kill in so many comes while the run still starts.
_EARLY = 5


class KilledChecks(Tool):
    """A case is a number of workers."""

    module = "torture.killed_checks"

    @staticmethod
    def add_options(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--kills", type=int, default=50, help="of each case")
        parser.add_argument("--workers", nargs="+", default=["1", "2"], metavar="N")

    def outcomes(self) -> Iterator[Outcome]:
        for workers in self.options.workers:
            yield from self.apart(workers)

    def run(self, case: str) -> Iterator[Outcome]:
        calls = _write_dump(Path("dump"))
        began = time.monotonic()
        _begin("undisturbed", case).wait()
        expected = _tables(Path("undisturbed"))
        killed, early = _kill("killed", case, self._moments(calls), time.monotonic() - began)
        status = _begin("killed", case).wait()
        figures = {"calls": calls, "killed": killed, "of these while it started": early}
        problems = [f"the last run ended with {status}"] * bool(status)
        found = _tables(Path("killed"))
        problems += [
            problem for kind in expected for problem in _differences(kind, expected[kind], found.get(kind, b""))
        ]
        problems += [f"{path.name} is left" for path in Path("killed").glob("*.journal")]
        problems += ["nothing was judged"] * (len(expected) != 2)
        details = [_rows(tables.get("details", b"")) for tables in (expected, found)]
        figures["rows with other figures"] = sum(one != other for one, other in zip(*details, strict=False))
        yield Outcome(f"{case} workers", problems, figures)

    def _moments(self, calls: int) -> list[int]:
        """How many calls are judged at each kill."""
        return sorted(random.Random(calls).sample(range(calls), min(self.options.kills, calls)))

    def lines(self, outcome: Outcome) -> Iterator[str]:
        yield f"{outcome.case}: {json.dumps(outcome.figures)}"
        yield from super().lines(outcome)


def _differences(kind: str, expected: bytes, found: bytes) -> Iterator[str]:
    """Say which rows of a table are others than without kills, the first few."""
    rows, others = (list(map(_without_figures, _rows(table))) for table in (expected, found))
    if rows != others:
        lost = [row for row in rows if row not in others]
        yield f"{kind}: {len(lost)} rows are not as without kills, {len(others)} of {len(rows)} rows: {lost[:3]}"


def _rows(table: bytes) -> list[list[str]]:
    return list(csv.reader(table.decode("utf-8-sig").splitlines()))


def _without_figures(row: list[str]) -> list[str]:
    """MindSpore rounds a few APIs otherwise from run to run, ``logcumsumexp`` and ``logaddexp2`` among them."""
    return ["number" if _is_number(cell) else cell for cell in row]


def _is_number(cell: str) -> bool:
    with suppress(ValueError):
        float(cell)
        return True
    return False


def _write_dump(folder: Path) -> int:
    """The examples of every API of MindSpore as a dump; how many calls they are."""
    # MindSpore's threads would hinder a process that goes on to run others.
    command = [sys.executable, "-m", "torture.api_sweep.as_dump", str(folder)]
    subprocess.run(command, env=environment(), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return len(json.loads((folder / "dump.json").read_text())["data"])


def _begin(output: str, workers: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "msprobe_ms", "acc_check", "-api_info", "dump", "-o", output, "-n", workers]
    command += ["--backward", "--no-html"]
    return subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _kill(output: str, workers: str, moments: list[int], seconds: float) -> tuple[int, int]:
    """Begin the run, and kill it, once for each of ``moments``; how often, and how often while it started.

    ``seconds``: how long the whole run takes undisturbed.
    """
    chance, killed, early = random.Random(workers), 0, 0
    for moment in moments:
        process = _begin(output, workers)
        starts = chance.randrange(_EARLY) == 0
        until = time.monotonic() + chance.uniform(0, min(seconds, 5)) if starts else float("inf")
        while process.poll() is None and time.monotonic() < until and _judged(Path(output)) < moment:
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.05))
        if process.poll() is not None:
            break
        process.kill()
        process.wait()
        killed, early = killed + 1, early + starts
    return killed, early


def _judged(output: Path) -> int:
    """How many calls the journals hold, each after its head."""
    return sum(max(file.read_bytes().count(b"\n") - 1, 0) for file in output.glob("*.journal"))


def _tables(output: Path) -> dict[str, bytes]:
    """Kind → the bytes of its latest table, which has all rows."""
    return {
        kind: max(output.glob(f"accuracy_checking_{kind}_*.csv")).read_bytes()
        for kind in ("result", "details")
        if any(output.glob(f"accuracy_checking_{kind}_*.csv"))
    }


if __name__ == "__main__":
    sys.exit(main(KilledChecks))
