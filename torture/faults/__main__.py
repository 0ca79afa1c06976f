"""Dump what is not dumped yet, compare every pair, and tell how often the planted module is the first origin.

python -m torture.faults DUMPS              # DUMPS keeps the dumps: a second run only compares
python -m torture.faults DUMPS --nets gpt llama --modes statistics --golden pytorch --misses
"""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from torture.faults.catalogue import NETS
from torture.faults.jobs import MINDSPORE, PYTORCH, Job
from torture.faults.score import MODES, Case, Score, cases, score, variant_cases
from torture.faults.table import alignment_table, misses, table
from torture.harness import ROOT, Outcome, Tool, main


class Faults(Tool):
    """One process for each framework dumps; some others compare. Misses are counted and are no reason to fail."""

    module = "torture.faults"

    @staticmethod
    def add_options(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("dumps", type=Path, help="folder of the dumps; what is there is not dumped again")
        parser.add_argument("--nets", nargs="+", default=list(NETS), choices=NETS, metavar="NET")
        parser.add_argument("--faults", nargs="+", metavar="FAULT", help='names of faults, "" for healthy pairs')
        parser.add_argument("--golden", nargs="+", default=[PYTORCH, MINDSPORE], choices=[PYTORCH, MINDSPORE])
        parser.add_argument("--modes", nargs="+", default=MODES, choices=MODES)
        parser.add_argument("--levels", nargs="+", default=["L0"], choices=["L0", "mix"])
        parser.add_argument("--fault-seeds", nargs="+", type=int, default=[0], help="of weights and batch")
        parser.add_argument("--healthy-seeds", nargs="+", type=int, default=[0, 1, 2])
        parser.add_argument("--variants", nargs="*", metavar="VARIANT", help='names of variants, "" for none')
        parser.add_argument(
            "--faulty-variants", nargs="*", default=["renamed", "wrapped"], help="those that meet faults too"
        )
        parser.add_argument("--processes", type=int, default=2)
        parser.add_argument("--misses", action="store_true", help="print only what was missed")

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self._scores: list[Score] = []

    def outcomes(self) -> Iterator[Outcome]:
        options = self.options
        everything = [
            *cases(options.nets, options.levels, options.fault_seeds, options.healthy_seeds),
            *variant_cases(options.nets, options.faulty_variants),
        ]
        wanted = [case for case in everything if self._is_chosen(case)]
        record(options.dumps, {job for case in wanted for job in (case.target_job, case.golden_job)})
        with ProcessPoolExecutor(options.processes, initializer=_quiet) as pool:
            for each in pool.map(partial(score, root=options.dumps), wanted, chunksize=4):
                self._scores.append(each)
                yield Outcome(str(each.case), list(misses([each])), each.as_json())

    def _is_chosen(self, case: Case) -> bool:
        options = self.options
        return (
            case.golden in options.golden
            and case.mode in options.modes
            and (options.variants is None or case.variant in options.variants)
            and (not options.faults or case.fault in options.faults)
        )

    def lines(self, outcome: Outcome) -> Iterator[str]:
        yield from outcome.problems

    def summary(self, outcomes: Sequence[Outcome]) -> Iterator[str]:
        same = [each for each in self._scores if not each.case.variant]
        others = [each for each in self._scores if each.case.variant]
        for lines, chosen in ((table, same), (alignment_table, others)):
            if chosen and not self.options.misses:
                yield ""
                yield from lines(chosen)

    def as_json(self, outcome: Outcome) -> dict[str, Any]:
        return outcome.figures

    def failed(self, outcomes: Sequence[Outcome]) -> bool:
        return False


def run_module(module: str, *arguments: str) -> int:
    """Run ``python -m module`` in the repository; return its exit status."""
    return subprocess.run([sys.executable, "-m", module, *arguments], cwd=ROOT, check=False).returncode


def record(root: Path, jobs: Iterable[Job], run: Callable[..., int] = run_module) -> None:
    """Dump the jobs that have no dump yet, in one process for each framework, side by side.

    ``run`` is given a module and its arguments, and returns the exit status.
    """
    missing = sorted((job for job in jobs if not job.is_done(root)), key=str)
    with ThreadPoolExecutor() as pool:
        ended = []
        for framework in (MINDSPORE, PYTORCH):
            if texts := [str(job) for job in missing if job.framework == framework]:
                ended.append(pool.submit(run, f"torture.faults.record_{framework}", str(root.absolute()), *texts))
    if any(each.result() for each in ended):
        sys.exit("a net could not be dumped, see above")


def _quiet() -> None:
    logging.disable(logging.WARNING)


if __name__ == "__main__":
    sys.exit(main(Faults))
