"""Console command ``merge_result``: chosen columns of the tables of all ranks in one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msprobe_ms.cli.common import (
    DONE,
    add_command,
    print_report,
)
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    pass

_MERGE_EPILOG = tr("""\
The yaml file:
  api:                       names, or beginnings of names, of rows; without it every row
    - Functional.layer_norm
  compare_index:             columns of the tables, a sheet each
    - Max diff
    - NormRelativeErr
It writes multi_ranks_compare_merge_<time>.xlsx: rows are NPU Name, columns ranks.""")


def add_merge_result(commands: Any) -> None:
    told = tr("put chosen columns of all ranks into one table")
    parser = add_command(commands, "merge_result", _merge_result, told, _MERGE_EPILOG)
    parser.add_argument(
        "-i", "--input_dir", type=Path, required=True, metavar="DIR", help="the folder with compare_result_rank*_*"
    )
    parser.add_argument("-o", "--output_dir", type=Path, metavar="DIR", help="where it goes (default ./output)")
    parser.add_argument(
        "-config", "--config", type=Path, required=True, metavar="YAML", help="which rows and columns (see below)"
    )


def _merge_result(options: argparse.Namespace) -> int:
    from msprobe_ms.comparison.many.merge_tables import merge, read_choice
    from msprobe_ms.comparison.reporting.files import claimed_timestamp

    output = options.output_dir or Path("output")
    with claimed_timestamp(output, "multi_ranks_compare_merge_") as timestamp:
        print_report(merge(options.input_dir, output, read_choice(options.config), timestamp))
    return DONE
