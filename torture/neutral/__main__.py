"""Train every net in every way with the tool and without, and tell what differs: nothing may.

python -m torture.neutral                                    # everything, an hour
python -m torture.neutral --nets views in_place --levels mix --tasks tensor async --frameworks pytorch
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator, Sequence

from torture.faults.catalogue import NETS as FAULT_NETS
from torture.harness import Outcome, Tool, main
from torture.neutral.ways import LEVELS, outcomes
from torture.recordings import CHECKS, TASKS

#: Nets of our own beside those of the fault suite.
OWN_NETS = ("in_place", "views", "hooked")

NETS = (*FAULT_NETS, *OWN_NETS)

#: Framework → the levels that it has; PyTorch shows no kernels.
FRAMEWORKS = {"mindspore": LEVELS, "pytorch": ("L0", "L1", "mix")}

#: The problem of a way that is neutral for nothing.
_EMPTY = "nothing was recorded"


class Neutral(Tool):
    """A case is a framework and ``NET:LEVEL:TASK`` as often as wanted; it has an outcome for each of these."""

    module = "torture.neutral"

    @staticmethod
    def add_options(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--nets", nargs="+", default=list(NETS), choices=NETS, metavar="NET")
        parser.add_argument("--frameworks", nargs="+", default=list(FRAMEWORKS), choices=FRAMEWORKS)
        parser.add_argument("--levels", nargs="+", default=list(LEVELS), choices=LEVELS)
        parser.add_argument("--tasks", nargs="+", default=[*TASKS, *CHECKS], choices=[*TASKS, *CHECKS])
        parser.add_argument(
            "--launch", default="blocking", choices=("blocking", "asynchronous"),
            help="of kernels; asynchronous as MindSpore does by itself, which takes many times longer",
        )  # fmt: skip
        parser.add_argument("--steps", type=int, default=20)
        parser.add_argument("--every", type=int, default=1, help="record every n-th step only")

    def outcomes(self) -> Iterator[Outcome]:
        for framework in self.options.frameworks:
            for net in self.options.nets:
                levels = [level for level in self.options.levels if level in _levels(framework, net)]
                ways = [
                    f"{net}:{level}:{task}"
                    for level in levels
                    for task in self.options.tasks
                    if task not in CHECKS or level == "L1"
                ]
                if ways:
                    yield from self.apart(" ".join((framework, *ways)))

    def run(self, case: str) -> Iterator[Outcome]:
        framework, *texts = case.split()
        side = importlib.import_module(f"torture.neutral.{framework}_side")
        side.prepare(self.options.launch)
        ways: dict[str, list[tuple[str, str]]] = {}
        for text in texts:
            net, level, task = text.split(":")
            ways.setdefault(net, []).append((level, task))
        recorded = range(0, self.options.steps, self.options.every)
        for net, chosen in ways.items():
            for outcome in outcomes(framework, net, chosen, recorded, side.Training, side.PrecisionDebugger):
                figures = outcome.figures
                silent = outcome.case.endswith("overflow") or outcome.case.rpartition(" ")[2] in CHECKS
                if not (figures["refused"] or figures["entries"] or silent):
                    outcome.problems.append(_EMPTY)
                yield outcome

    def lines(self, outcome: Outcome) -> Iterator[str]:
        figures = outcome.figures
        if not figures or outcome.problems == [_EMPTY]:
            yield from super().lines(outcome)
        elif figures["refused"]:
            yield f"{outcome.case}: refused: {figures['refused'].splitlines()[0]}"
        elif outcome.problems:
            shown = ", ".join(outcome.problems[:5])
            yield f"{outcome.case}: {len(outcome.problems)} of {figures['values']} values DIFFER or are wrong: {shown}"
        else:
            yield f"{outcome.case}: {figures['values']} values equal, {figures['entries']} entries"

    def summary(self, outcomes: Sequence[Outcome]) -> Iterator[str]:
        refused = [outcome for outcome in outcomes if outcome.figures.get("refused")]
        values, entries = (sum(outcome.figures.get(key, 0) for outcome in outcomes) for key in ("values", "entries"))
        yield (
            f"{len(outcomes) - len(refused)} trainings of {self.options.steps} steps compared with one without the "
            f"tool: {values} values, {entries} entries recorded, "
            f"{sum(bool(outcome.problems) for outcome in outcomes)} trainings differ or recorded nothing; "
            f"{len(refused)} ways are refused"
        )


def _levels(framework: str, net: str) -> Sequence[str]:
    # Kernels of compiled graphs are recorded by MindSpore, which an environment variable tells so before it starts.
    compiled = framework == "mindspore" and net in FAULT_NETS and FAULT_NETS[net].compiled
    return [level for level in FRAMEWORKS[framework] if not (compiled and level == "L2")]


if __name__ == "__main__":
    sys.exit(main(Neutral))
