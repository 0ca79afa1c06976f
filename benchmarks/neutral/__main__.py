"""Train every net in every way with the tool and without, and tell what differs: nothing may.

python -m benchmarks.neutral                                    # everything, an hour
python -m benchmarks.neutral --nets views in_place --levels mix --tasks tensor async --frameworks pytorch
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.faults.catalogue import NETS as FAULT_NETS
from benchmarks.neutral.ways import LEVELS, TASKS, Outcome

_REPOSITORY = Path(__file__).parents[2]

#: Nets of our own beside those of the fault suite.
OWN_NETS = ("in_place", "views", "hooked")

NETS = (*FAULT_NETS, *OWN_NETS)

#: Framework → the levels that it has; PyTorch shows no kernels.
FRAMEWORKS = {"mindspore": LEVELS, "pytorch": ("L0", "L1", "mix")}


def train(
    framework: str, steps: int, cases: Sequence[str], *, every: int = 1, launch: str = "blocking"
) -> Iterator[Outcome]:
    """The outcomes of ``NET:LEVEL:TASK`` cases, as a process of its own tells them; SystemExit when that fails.

    ``launch``: ``blocking``, or ``asynchronous`` as MindSpore does by itself, which takes many times longer.
    """
    command = [sys.executable, "-m", f"benchmarks.neutral.{framework}_side", str(steps), str(every), launch, *cases]
    with subprocess.Popen(command, cwd=_REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith('["'):
                yield Outcome.parse(line)
    if process.returncode:
        sys.exit(f"{framework}: the training ended with code {process.returncode}, see above")


def main() -> None:
    arguments = _parser().parse_args()
    counts: Counter[str] = Counter()
    for framework in arguments.frameworks:
        for net in arguments.nets:
            levels = [level for level in arguments.levels if level in _levels(framework, net)]
            if not levels:
                continue
            cases = [f"{net}:{level}:{task}" for level in levels for task in arguments.tasks]
            for outcome in train(framework, arguments.steps, cases, every=arguments.every, launch=arguments.launch):
                counts.update(_count(outcome))
                _tell(outcome)
    print(
        f"{counts['cases']} trainings of {arguments.steps} steps compared with one without the tool: "
        f"{counts['values']} values, {counts['entries']} entries recorded, {counts['different']} trainings differ; "
        f"{counts['refused']} ways are refused, {counts['empty']} recorded nothing"
    )
    sys.exit(bool(counts["different"] or counts["empty"]))


def _levels(framework: str, net: str) -> Sequence[str]:
    # Kernels of compiled graphs are recorded by MindSpore, which an environment variable tells so before it starts.
    compiled = framework == "mindspore" and net in FAULT_NETS and FAULT_NETS[net].compiled
    return [level for level in FRAMEWORKS[framework] if not (compiled and level == "L2")]


def _count(outcome: Outcome) -> dict[str, int]:
    if outcome.refused:
        return {"refused": 1}
    different, empty = bool(outcome.differences), outcome.entries == 0 and outcome.way.task != "overflow"
    return {
        "cases": 1,
        "values": outcome.compared,
        "entries": outcome.entries,
        "different": int(different),
        "empty": int(empty),
    }


def _tell(outcome: Outcome) -> None:
    name = f"{outcome.framework} {outcome.net} {outcome.way.level} {outcome.way.task}"
    if outcome.refused:
        print(f"{name}: refused: {outcome.refused.splitlines()[0]}", flush=True)
    elif outcome.differences:
        shown = ", ".join(outcome.differences[:5])
        print(f"{name}: {len(outcome.differences)} of {outcome.compared} values DIFFER: {shown}", flush=True)
    else:
        print(f"{name}: {outcome.compared} values equal, {outcome.entries} entries", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.neutral", description=__doc__.splitlines()[0])
    parser.add_argument("--nets", nargs="+", default=list(NETS), choices=NETS, metavar="NET")
    parser.add_argument("--frameworks", nargs="+", default=list(FRAMEWORKS), choices=FRAMEWORKS)
    parser.add_argument("--levels", nargs="+", default=list(LEVELS), choices=LEVELS)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--launch", default="blocking", choices=("blocking", "asynchronous"), help="of kernels")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--every", type=int, default=1, help="record every n-th step only")
    return parser


if __name__ == "__main__":
    main()
