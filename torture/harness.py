"""Run the cases of a torture tool: options, a process for each case, a line for each outcome, JSON, an exit code.

A tool is a `Tool` with its cases and their judge; ``main(ThatTool)`` is its command line.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

#: The repository: processes find ``torture`` and ``msprobe_ms`` there.
ROOT = Path(__file__).parents[1]
#: What a line begins with that tells of an outcome; frameworks print, too.
_MARK = "outcome: "


@dataclass
class Outcome:
    """What came of a case: ``problems`` (none: it passed), and the ``figures`` that were taken."""

    case: str
    problems: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


class Tool:
    """A torture tool. Subclasses say what its cases are, how one is judged, and how outcomes read."""

    #: The module that ``python -m`` runs.
    module = ""
    #: Where cases have their working directories; None: where temporary files lie.
    scratch: Path | None = None

    @staticmethod
    def add_options(parser: argparse.ArgumentParser) -> None:
        """Add the tool's own options."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options

    def outcomes(self) -> Iterator[Outcome]:
        """Run every case that the options ask for."""
        raise NotImplementedError

    def run(self, case: str) -> Iterator[Outcome]:
        """Run one case in this process, which is the case's own."""
        raise NotImplementedError

    def apart(self, case: str, before: Sequence[str] = ()) -> Iterator[Outcome]:
        """`run` a case in a process of its own, with the options of this one."""
        return apart(self.module, case, sys.argv[1:], before=before, scratch=self.scratch)

    def lines(self, outcome: Outcome) -> Iterator[str]:
        """What is printed of an outcome at once."""
        yield from (f"{outcome.case}: {problem}" for problem in outcome.problems)

    def summary(self, outcomes: Sequence[Outcome]) -> Iterator[str]:
        """What is printed in the end."""
        failed = sum(bool(outcome.problems) for outcome in outcomes)
        yield f"{len(outcomes)} cases, {failed} of them with problems"

    def as_json(self, outcome: Outcome) -> dict[str, Any]:
        """What ``--json`` writes of an outcome."""
        return {"case": outcome.case, **outcome.figures, "problems": outcome.problems, "seconds": outcome.seconds}

    def failed(self, outcomes: Sequence[Outcome]) -> bool:
        """Whether the exit code is 1."""
        return any(outcome.problems for outcome in outcomes)


def main(kind: type[Tool]) -> int:
    """Run a tool by its command line; returns the exit code."""
    text = sys.modules[kind.__module__].__doc__ or ""
    parser = argparse.ArgumentParser(
        f"python -m {kind.module}", description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kind.add_options(parser)
    parser.add_argument("--json", type=Path, help="write every outcome to this file")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    tool = kind(options)
    if options.one is not None:
        for outcome in tool.run(options.one):
            print(_MARK + json.dumps(vars(outcome)), flush=True)
        return 0
    outcomes: list[Outcome] = []
    try:
        for outcome in tool.outcomes():
            outcomes.append(outcome)
            for line in tool.lines(outcome):
                print(line, flush=True)
    finally:
        if options.json and outcomes:
            options.json.write_text(json.dumps([tool.as_json(each) for each in outcomes], indent=1), encoding="utf-8")
    for line in tool.summary(outcomes):
        print(line)
    return tool.failed(outcomes)


def environment() -> dict[str, str]:
    """The environment of a process that imports from the repository."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))}


def printed(lines: Iterable[str]) -> Iterator[Outcome]:
    """Read the outcomes that ``--one`` printed among other lines."""
    for line in lines:
        if line.startswith(_MARK):
            yield Outcome(**json.loads(line.removeprefix(_MARK)))


def apart(
    module: str, case: str, arguments: Sequence[str], *, before: Sequence[str] = (), scratch: Path | None = None
) -> Iterator[Outcome]:
    """Run a case of the tool ``module`` in a process and a working directory of its own; yield its outcomes.

    A process that dies is an outcome with a problem. ``before`` stands before the command.
    """
    command = [*before, sys.executable, "-m", module, *arguments, "--one", case]
    began = time.monotonic()
    with TemporaryDirectory(dir=scratch) as folder, TemporaryFile("w+", errors="replace") as errors:
        with subprocess.Popen(
            command, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process:
            assert process.stdout is not None
            for outcome in printed(process.stdout):
                outcome.seconds, began = time.monotonic() - began, time.monotonic()
                yield outcome
        if process.returncode:
            errors.seek(0)
            problem = f"exit code {process.returncode}: {errors.read()[-2000:]}"
            yield Outcome(case, [problem], seconds=time.monotonic() - began)
