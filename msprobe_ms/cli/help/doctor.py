"""Console command ``doctor``: what works on this machine, and what to do about what does not."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msprobe_ms.cli.common import DONE, FAILED, add_command, print_lines
from msprobe_ms.support.translation import tr, tr_count, translated

if TYPE_CHECKING:
    from msprobe_ms.doctor.examine import Finding

_EPILOG = tr("""\
Looks at the versions of packages, at MindSpore and PyTorch (each is imported, in a process of its own) with the
execution modes and levels that they record, at a mindstudio-probe beside this, at the disk and its permissions.
Marks: ok works; -- is not installed and not needed for the rest; ? may become too little, see the advice; !! has to be
put right, and the exit status is 2.""")


def add_doctor(commands: Any) -> None:
    parser = add_command(
        commands, "doctor", _run, tr("check this machine, and say how to fix what does not work"), _EPILOG
    )
    usual = tr("where dumps are to be written (default ./dump_path)")
    parser.add_argument("--dump_path", type=Path, default=Path("dump_path"), metavar="DIR", help=usual)


def _run(options: argparse.Namespace) -> int:
    from msprobe_ms.doctor.examine import State

    wrong = 0
    for finding in _findings(options.dump_path):
        lines = [tr("{value}  {text}", value=finding.state.value, text=finding.text)]
        if finding.advice:
            lines += [tr("      {line}", line=line) for line in translated(finding.advice).split("\n")]
        print_lines(lines)  # each as soon as it is known
        wrong += finding.state is State.WRONG
    many = tr_count(
        "{count} thing has to be put right, see !! above", "{count} things have to be put right, see !! above", wrong
    )
    print_lines([many if wrong else tr("nothing has to be put right")])
    return FAILED if wrong else DONE


def _findings(dump_path: Path) -> Iterator[Finding]:
    from msprobe_ms.compat.neighbour import describe_conflict
    from msprobe_ms.doctor.examine import Finding, State, examine

    yield from examine(dump_path)
    if conflict := describe_conflict():
        told, _, advice = conflict.partition("\n")
        yield Finding(State.WRONG, told, advice)
    else:
        yield Finding(State.GOOD, tr("no mindstudio-probe beside it: `msprobe` is this one"))
