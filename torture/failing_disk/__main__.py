"""Let every call of recorded trainings that touches their dumps fail in turn: ``python -m torture.failing_disk``.

Each scenario has a process of its own. The exit code is 0 when every case passed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from torture.failing_disk.real import wrapper
from torture.failing_disk.run import run, run_real
from torture.failing_disk.trainings import SCENARIOS
from torture.harness import Outcome, Tool, main

#: A file system in memory, where there is one: cases are many.
_MEMORY = Path("/dev/shm")
#: Failures of one scenario that are printed.
_SHOWN = 10
_COLUMNS = (("cases", 8), ("failed", 8), ("lacking", 9), ("by warning", 12), ("seconds", 9))


class FailingDisk(Tool):
    module = "torture.failing_disk"
    scratch = _MEMORY if _MEMORY.is_dir() else None

    @staticmethod
    def add_options(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("scenarios", nargs="*", help="those whose names hold one of these words (default: all)")
        parser.add_argument("--every", type=int, default=1, help="only each N-th call fails (default: every call)")
        parser.add_argument(
            "--real", action="store_true", help="disks that are really full, folders really closed or removed"
        )

    def outcomes(self) -> Iterator[Outcome]:
        before = wrapper() if self.options.real else ()
        if before is None:
            print("no disk can be made to fail in earnest here: that takes unshare and setpriv, and the right to mount")
            sys.exit(2)
        print(f"{'scenario':32}{''.join(title.rjust(width) for title, width in _COLUMNS)}", flush=True)
        words = self.options.scenarios or [""]
        for name in SCENARIOS:
            if any(word in name for word in words):
                yield from self.apart(name, before)

    def run(self, case: str) -> Iterator[Outcome]:
        yield (run_real if self.options.real else run)(case, Path.cwd(), self.options.every)

    def lines(self, outcome: Outcome) -> Iterator[str]:
        figures = outcome.figures
        lacking = figures.get("lacking", 0), figures.get("by_warning_alone", 0)
        values = _cases(outcome), len(outcome.problems), *lacking, round(outcome.seconds)
        cells = (str(value).rjust(width) for value, (_, width) in zip(values, _COLUMNS, strict=True))
        yield f"{outcome.case:32}{''.join(cells)}"
        yield from (f"  {text}" for text in outcome.problems[:_SHOWN])

    def summary(self, outcomes: Sequence[Outcome]) -> Iterator[str]:
        failures = sum(len(outcome.problems) for outcome in outcomes)
        yield f"{len(outcomes)} scenarios, {sum(map(_cases, outcomes))} cases, {failures} failures"


def _cases(outcome: Outcome) -> int:
    return sum(outcome.figures.get("cases", {}).values())


if __name__ == "__main__":
    sys.exit(main(FailingDisk))
