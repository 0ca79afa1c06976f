"""Console command ``grad_compare``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from msprobe_ms.cli.common import (
    add_command,
    add_output,
    add_parameter_pairing,
    exit_status,
    output_folder,
    parameter_mappings,
    print_lines,
    print_verdict,
)
from msprobe_ms.support.translation import tr

_EPILOG = tr("""\
examples:
  msprobe grad_compare mindspore_gradients pytorch_gradients -o out
  msprobe grad_compare run1 run2 --exit-code

TARGET and GOLDEN are what task grad_probe wrote, here or in msprobe: the dump_path of a training, or the folder of one
rank. Parameters pair as in compare_weights; -lm FILE or -dm FILE pairs names that differ. See docs/gradients.md.""")


def add_grad_compare(commands: Any) -> None:
    summary = tr("compare the gradients that two trainings wrote with task grad_probe")
    parser = add_command(commands, "grad_compare", _run, summary, _EPILOG)
    parser.add_argument("target", type=Path, metavar="TARGET", help="the gradients under suspicion: a folder")
    parser.add_argument("golden", type=Path, metavar="GOLDEN", help="the gradients to trust")
    add_output(parser, tr("where the tables and the page go (default ./output)"))
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 when the trainings diverge")
    add_parameter_pairing(parser)


def _run(options: argparse.Namespace) -> int:
    # Imported here: `msprobe -h` needs none of it.
    from tqdm import tqdm

    from msprobe_ms.gradients.compare import compare_gradients
    from msprobe_ms.gradients.report import gradient_lines, write_gradients

    mappings = parameter_mappings(options, "grad_compare")
    with tqdm(unit="step", disable=None) as bar:

        def tell(done: int, all_of_them: int) -> None:
            bar.total = all_of_them
            bar.update(done - bar.n)

        comparison = compare_gradients(options.target, options.golden, mappings, tell)
    print_verdict(gradient_lines(comparison))
    page, *others = write_gradients(comparison, output_folder(options))
    print_lines([tr("report: {path}", path=page), *(tr("table: {each}", each=each) for each in others[:5])])
    return exit_status(options, divergent=comparison.parting is not None)
