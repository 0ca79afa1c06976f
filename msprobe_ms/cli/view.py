"""Console command ``view``: one dump alone as a page to look at."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from msprobe_ms.cli.common import DONE, add_command, add_output, output_folder, print_lines
from msprobe_ms.support.translation import tr

_EPILOG = tr("""\
examples:
  msprobe view ./dump                   (a page for every step and rank: output/dump_view_step0_rank0_….html)
  msprobe view ./dump/step0/rank0 -o report

A page shows the values along the execution, where NaN and infinity come from, the model, and the lines that made the
calls. It is one file, which a browser opens offline.""")


def add_view(commands: Any) -> None:
    parser = add_command(commands, "view", _view, tr("write a dump as a page to look at"), _EPILOG)
    parser.add_argument(
        "dump", type=Path, metavar="DUMP", help="a dump.json, a rank or step folder, a whole dump, or files of kernels"
    )
    add_output(parser, tr("where pages go (default ./output)"))
    parser.add_argument(
        "--html-rows", choices=("all",), help="put the figures of all values in the page (default: at most 12 MB)"
    )
    parser.add_argument("--html-no-stacks", action="store_true", help="no call sites and no paths in the page")


def _view(options: argparse.Namespace) -> int:
    # Imported here: `msprobe -h` needs none of it.
    from msprobe_ms.comparison.reporting.files import claimed_timestamp
    from msprobe_ms.comparison.view.view import view

    folder = output_folder(options)
    with claimed_timestamp(folder, "dump_view_") as timestamp:
        all_rows, stacks = options.html_rows == "all", not options.html_no_stacks
        for file in view(options.dump, folder, timestamp, all_rows=all_rows, stacks=stacks):
            print_lines([tr("page: {file}", file=file)])
    return DONE
