"""Console command ``overflow_check``, and ``compare`` of two dumps of kernels."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from msprobe_ms.cli.common import (
    DONE,
    add_command,
    add_output,
    exit_status,
    output_folder,
    print_lines,
    print_report,
    print_verdict,
)
from msprobe_ms.comparison.terms import Verdict
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr

_OVERFLOW_EPILOG = tr("""\
examples:
  msprobe overflow_check -i dump/step3                 (an index, or any dump with statistics)
  msprobe overflow_check -i dump/rank_0/Net/0/3 -o out (raw files of compiled graphs)""")

_NAN_EPILOG = tr("""\
examples:
  msprobe nan_analyze -i dump/step3
  msprobe nan_analyze -i dump -o out --exit-code

Ranks are put in order by the collectives that they took part in, which levels L1 and mix record.""")


def add_overflow_check(commands: Any) -> None:
    told = tr("find the first call or kernel that returns NaN or infinity for finite inputs")
    parser = add_command(commands, "overflow_check", _overflow_check, told, _OVERFLOW_EPILOG)
    dump = tr("a dump.json, a rank or step folder, or raw kernel files")
    parser.add_argument("-i", "--input_path", type=Path, metavar="PATH", required=True, help=dump)
    add_output(parser, tr("where the answer goes (default ./output)"))


def add_nan_analyze(commands: Any) -> None:
    told = tr("find the rank and the call that produced the first NaN of a step, and how it spread")
    parser = add_command(commands, "nan_analyze", _nan_analyze, told, _NAN_EPILOG)
    dump = tr("the dump of a training, or one of its steps, with the folders of its ranks")
    parser.add_argument("-i", "--input_path", type=Path, metavar="PATH", required=True, help=dump)
    add_output(parser, tr("where the answer goes (default ./output)"))
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 when something is not finite")


def compare(target: Path, golden: Path, ranks: list[int], steps: list[int], options: argparse.Namespace) -> bool:
    """Compare kernel dumps and print what was found; return whether one diverges."""
    from msprobe_ms.comparison.kernels.compare import compare_kernels
    from msprobe_ms.comparison.reporting.terminal import verdict_lines

    given = [
        flag
        for flag, value in (
            ("-cm", options.cell_mapping), ("-lm", options.layer_mapping), ("-dm", options.data_mapping),
            ("-fm", options.fuzzy_match), ("-s", options.stack_mode),
            ("--node", options.node),
        )
        if value
    ]  # fmt: skip
    if given:
        raise UsageError(
            tr(
                "compare: {given}: does not apply to raw kernel files, which pair by their names in the "
                "graph; compare their indices instead (msprobe index), or leave it out",
                given=", ".join(given),
            )
        )
    profile = options.profile or ("v110" if options.input_path is not None else "latest")
    output, divergent = output_folder(options), False
    for outcome in compare_kernels(target, golden, output, ranks=ranks, steps=steps, profile=profile, csv=options.csv):
        print_verdict(verdict_lines(outcome))
        divergent = divergent or outcome.comparison.verdict == Verdict.DIVERGENT
    return divergent


def holds_kernels_alone(path: Path) -> bool:
    """Return whether ``path`` is a folder of raw kernel files without any dump.json that compare could take."""
    from msprobe_ms.dump.kernels.kernel_files import find_kernel_folders
    from msprobe_ms.dump.reading.locate import find_dumps
    from msprobe_ms.support.errors import DumpFormatError

    if not path.is_dir():
        return False
    try:
        find_dumps(path)
    except DumpFormatError:
        return not any(path.rglob("dump.json")) and bool(find_kernel_folders(path))
    return False


def holds_kernels_too(path: Path) -> bool:
    """Return whether raw kernel files lie beside the steps of a dump root."""
    from msprobe_ms.dump.kernels.kernel_files import find_kernel_folders
    from msprobe_ms.dump.reading.locate import of_dumps

    if not path.is_dir():
        return False
    return any(find_kernel_folders(inner) for inner in path.iterdir() if inner.is_dir() and not of_dumps(inner))


def _nan_analyze(options: argparse.Namespace) -> int:
    from msprobe_ms.comparison.view.nonfinite_ranks import analysis_lines, analyze, write_analysis

    steps = analyze(options.input_path)
    for step in steps:
        print_lines(analysis_lines(step))
    print_report(write_analysis(steps, output_folder(options)))
    return exit_status(options, divergent=any(step.found for step in steps))


def _overflow_check(options: argparse.Namespace) -> int:
    from msprobe_ms.comparison.kernels.first_nonfinite import answer_lines, first_bad, write_answer

    answers = first_bad(options.input_path)
    for answer in answers:
        print_lines(answer_lines(answer))
    print_report(write_answer(answers, output_folder(options)))
    return DONE
