"""End trainings at random moments and look at what they leave: ``python -m torture.kills FOLDER [--runs 500]``.

FOLDER keeps what went wrong. ``--seed`` repeats the plans of an earlier call, not the moments to the instruction.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from torture.harness import Outcome, Tool, main
from torture.kills.inspection import Findings, Whole, inspect
from torture.kills.plans import ON_A_LINE, SIGNALLED, Plan, Setting, ends
from torture.kills.runs import Trainings, trainings

#: Lies in a folder that this made.
_MARK = ".killed_trainings"


class Kills(Tool):
    """Each training is a fork of a process that has imported its framework (`runs`)."""

    module = "torture.kills"

    @staticmethod
    def add_options(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="what an earlier call left in it is removed")
        parser.add_argument("--runs", type=int, default=500)
        parser.add_argument("--first", type=int, default=0, help="leave out so many: a part of a longer call")
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--only", default="", help="only where this is in the setting or the way")
        parser.add_argument("--verbose", action="store_true")

    def outcomes(self) -> Iterator[Outcome]:
        options = self.options
        folder = options.folder.resolve()  # trainings run in folders of their own
        _clear(folder)
        pairs = list(ends(options.first + options.runs, random.Random(options.seed)))
        with trainings() as started:
            ending = Ending(started, folder, random.Random(options.seed))
            for number, (setting, way) in enumerate(pairs[options.first :], options.first):
                if options.only in f"{setting}: {way}":
                    plan, found = ending.run(setting, way, number)
                    figures = {"setting": str(setting), "way": way, "counts": found.counts}
                    yield Outcome(f"{number} {plan}", found.problems, figures)

    def lines(self, outcome: Outcome) -> Iterator[str]:
        yield from super().lines(outcome)
        if self.options.verbose:
            yield f"{time.strftime('%X')} {outcome.case}: {dict(outcome.figures['counts'])}"

    def summary(self, outcomes: Sequence[Outcome]) -> Iterator[str]:
        """How many runs there were of each way, framework and mode, level and task, and what was looked at."""
        words = [outcome.figures["setting"].split(" ", 3) for outcome in outcomes]
        for title, names in (
            ("way of ending", [outcome.figures["way"] for outcome in outcomes]),
            ("framework and mode", [" ".join(each[:2]) for each in words]),
            ("level", [each[2] for each in words]),
            ("task", [each[3] for each in words]),
        ):
            runs = Counter(names)
            wrong = Counter(name for name, outcome in zip(names, outcomes, strict=True) if outcome.problems)
            yield f"{title}: " + ", ".join(
                f"{name} {number}" + (f" ({wrong[name]} WRONG)" if wrong[name] else "")
                for name, number in sorted(runs.items())
            )
        counts: Counter[str] = sum((outcome.figures["counts"] for outcome in outcomes), Counter())
        yield ", ".join(f"{name} {number}" for name, number in sorted(counts.items()))
        yield f"{len(outcomes)} runs, {sum(bool(outcome.problems) for outcome in outcomes)} of them with problems"


def _clear(folder: Path) -> None:
    """Empty a folder that an earlier call made."""
    if folder.exists() and any(folder.iterdir()) and not (folder / _MARK).exists():
        sys.exit(f"{folder}: holds files that no earlier call made; give another folder")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / _MARK).touch()


class Ending:
    """Runs trainings that end; what the same training records and does otherwise is run once, when it is needed."""

    def __init__(self, started: Trainings, folder: Path, chance: random.Random) -> None:
        self._trainings = started
        self._folder = folder
        self._chance = chance
        self._wholes: dict[Setting, Whole] = {}

    def run(self, setting: Setting, way: str, number: int) -> tuple[Plan, Findings]:
        """One training; its folder stays if anything is wrong with it."""
        plan = self._plan(setting, way)
        folder = self._folder / str(number)
        bare = None
        if way in ("exception", "exit"):  # by what raises there, not every place can be left in the same way
            bare = self._trainings.run(plan.bare, folder / "bare")
        run = self._trainings.run(plan, folder / "recorded")
        found = inspect(run, self._wholes[setting], bare)
        if not found.problems:
            shutil.rmtree(folder)
        return plan, found

    def whole(self, setting: Setting) -> Whole:
        """The training that nobody ends. Raises RuntimeError when there is anything wrong with it already."""
        if setting not in self._wholes:
            folder = self._folder / f"{setting}".replace(" ", "_")
            run = self._trainings.run(Plan(setting), folder)
            found = inspect(run, None)
            if found.problems or not found.counts["entries"]:
                raise RuntimeError(f"{run.plan}: {found.problems or 'records nothing'}; see {folder}")
            self._wholes[setting] = Whole(run)
            found = inspect(run, self._wholes[setting])
            if found.problems:
                raise RuntimeError(f"{run.plan}: {found.problems}; see {folder}")
            shutil.rmtree(folder)
        return self._wholes[setting]

    def _plan(self, setting: Setting, way: str) -> Plan:
        whole, chance = self.whole(setting), self._chance
        if way == "kill at file":
            return Plan(setting, way, chance.randint(1, whole.files))
        if way not in SIGNALLED:
            # Some hundred lines of the tool lie between two that are told, thousands in an export.
            lines = int(10 ** chance.uniform(0, 3.5)) if way in ON_A_LINE else 0
            return Plan(setting, way, chance.randint(1, len(whole.told)), lines=lines)
        times = [line["time"] for line in whole.told]
        gaps = [later - earlier for earlier, later in pairwise(times)]
        # Any moment, but for long ones (graphs are compiled): they would leave the others no share.
        (line,) = chance.choices(range(len(gaps)), [min(gap, 0.02) for gap in gaps])
        return Plan(setting, way, line + 1, chance.uniform(0, gaps[line]))


if __name__ == "__main__":
    sys.exit(main(Kills))
