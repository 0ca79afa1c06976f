"""Interrupt a recording at every line of the package, and look whether training is left as it was.

python -m torture.interrupts                                       # every line, hours
python -m torture.interrupts --every 97 --framework pytorch        # a sample
python -m torture.interrupts --phase stop --error MemoryError
python -m torture.interrupts --after-calls --error KeyboardInterrupt

A small net is recorded over one step, in five phases: start, forward, backward, stop, step. In one of them an exception
is raised as a line of the package begins, for every line, the first and the last time that it is run. KeyboardInterrupt
and SystemExit must arrive at the training, MemoryError and RecursionError must not (raised only where a line calls or
makes something). Then the training calls `stop` and `step`, and another step is recorded. In the end nothing of the
framework, the net or the process may have changed, the step that was interrupted must be whole or say that it is not,
and the other one must be whole.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from torture.harness import Outcome, Tool, main
from torture.interrupts.places import ERRORS, Interruption, Survey
from torture.interrupts.trials import PHASES, Trials

FRAMEWORKS = ("pytorch", "mindspore")


class Interrupts(Tool):
    module = "torture.interrupts"

    @staticmethod
    def add_options(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--framework", nargs="+", choices=FRAMEWORKS, default=FRAMEWORKS)
        parser.add_argument("--phase", nargs="+", choices=PHASES, default=PHASES)
        parser.add_argument("--error", nargs="+", choices=list(ERRORS), default=list(ERRORS))
        parser.add_argument(
            "--occurrences", type=int, default=2, help="how often each line is tried, where it runs often"
        )
        parser.add_argument("--after-calls", action="store_true", help="after each call, not at each line")
        parser.add_argument("--every", type=int, default=1, help="only every so-manieth line")
        parser.add_argument("--first", type=int, default=1, help="the first of these lines")
        parser.add_argument("--cold", action="store_true", help="forget before each trial what functions remember")
        parser.add_argument("--level", default="mix")
        parser.add_argument("--task", default="statistics")

    def outcomes(self) -> Iterator[Outcome]:
        for framework in self.options.framework:
            yield from self.apart(framework)

    def run(self, case: str) -> Iterator[Outcome]:
        options = self.options
        os.environ["MSPROBE_LOG_LEVEL"] = "4"
        training = import_module(f"torture.interrupts.of_{case}").make()
        with TemporaryDirectory() as folder:
            settings = {"level": options.level, "task": options.task}
            trials = Trials(training, Path(folder), settings, cold=options.cold)
            for phase in options.phase:
                for way in training.ways if phase == "forward" else training.ways[:1]:
                    training.way = way
                    for error in options.error:
                        yield self._each_line(trials, phase, error, f"{case} {way} {phase} {error}")

    def _each_line(self, trials: Trials, phase: str, name: str, case: str) -> Outcome:
        options, error = self.options, ERRORS[name]
        survey = Survey(error, after_calls=options.after_calls)
        outcome = Outcome(case, trials.trial(phase, survey))
        places = survey.chosen(options.occurrences)
        figures = outcome.figures = {"run": survey.passed, "places": len(places), "tried": 0, "failed": 0}
        for place in places[options.first - 1 :: options.every]:
            interruption = Interruption(error, place)
            problems = trials.trial(phase, interruption)
            figures["tried"] += interruption.happened
            figures["failed"] += bool(problems)
            if problems:
                outcome.problems.append(f"{place}: {'; '.join(problems)}")
        return outcome

    def lines(self, outcome: Outcome) -> Iterator[str]:
        yield from super().lines(outcome)
        if figures := outcome.figures:
            tried = f"{figures['tried']} of {figures['places']} places tried, of {figures['run']} run"
            yield f"{outcome.case}: {tried}, {figures['failed']} with problems, {outcome.seconds:.0f} s"


if __name__ == "__main__":
    sys.exit(main(Interrupts))
