"""Dump what is not dumped yet, compare every pair, and tell how often the planted module is the first origin.

python -m benchmarks.faults DUMPS              # DUMPS keeps the dumps: a second run only compares
python -m benchmarks.faults DUMPS --nets gpt llama --modes statistics --golden pytorch --misses
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.faults.catalogue import NETS
from benchmarks.faults.jobs import MINDSPORE, PYTORCH, Job
from benchmarks.faults.score import MODES, Case, Score, cases, score, variant_cases
from benchmarks.faults.table import alignment_table, misses, table

_REPOSITORY = Path(__file__).parents[2]


def main() -> None:
    arguments = _parser().parse_args()
    everything = [
        *cases(arguments.nets, arguments.levels, arguments.fault_seeds, arguments.healthy_seeds),
        *variant_cases(arguments.nets, arguments.faulty_variants),
    ]
    wanted = [case for case in everything if _is_chosen(case, arguments)]
    record(arguments.dumps, {job for case in wanted for job in (case.target_job, case.golden_job)})
    scores = score_all(wanted, arguments.dumps, arguments.processes)
    if arguments.json:
        arguments.json.write_text(json.dumps([each.as_json() for each in scores], indent=1), encoding="utf-8")
    print("\n".join(misses(scores)))
    if not arguments.misses:
        same = [each for each in scores if not each.case.variant]
        others = [each for each in scores if each.case.variant]
        for lines, chosen in ((table, same), (alignment_table, others)):
            if chosen:
                print("\n".join(["", *lines(chosen)]))


def record(root: Path, jobs: Iterable[Job]) -> None:
    """Dump the jobs that have no dump yet, in one process for each framework, side by side."""
    missing = sorted((job for job in jobs if not job.is_done(root)), key=str)
    processes = []
    for framework in (MINDSPORE, PYTORCH):
        if texts := [str(job) for job in missing if job.framework == framework]:
            script = f"benchmarks.faults.record_{framework}"
            command = [sys.executable, "-m", script, str(root.absolute()), *texts]
            processes.append(subprocess.Popen(command, cwd=_REPOSITORY))
    if any(process.wait() for process in processes):
        sys.exit("a net could not be dumped, see above")


def score_all(wanted: list[Case], root: Path, processes: int = 2) -> list[Score]:
    with ProcessPoolExecutor(processes, initializer=_quiet) as pool:
        return list(pool.map(partial(score, root=root), wanted, chunksize=4))


def _quiet() -> None:
    logging.disable(logging.WARNING)


def _is_chosen(case: Case, arguments: argparse.Namespace) -> bool:
    return (
        case.golden in arguments.golden
        and case.mode in arguments.modes
        and (arguments.variants is None or case.variant in arguments.variants)
        and (not arguments.faults or case.fault in arguments.faults)
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.faults", description=__doc__.splitlines()[0])
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
    parser.add_argument("--json", type=Path, help="write every score with its origins here")
    parser.add_argument("--misses", action="store_true", help="print only what was missed")
    return parser


if __name__ == "__main__":
    main()
