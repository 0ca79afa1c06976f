"""Console commands ``overflow_check`` and ``nan_analyze``: where the first NaN or infinity came from."""

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
)
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
    told = tr("find the first call or kernel that turns finite inputs into NaN or infinity")
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
