"""Console commands about checks of single APIs: ``api_precision_compare``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from msprobe_ms.cli.common import add_command, exit_status, print_lines
from msprobe_ms.support.translation import tr

_EPILOG = tr("""\
examples:
  msprobe api_precision_compare -npu npu/accuracy_checking_details_20260101120000.csv \\
                                -gpu gpu/accuracy_checking_details_20260101130000.csv -o out
  msprobe api_precision_compare -tp ascend/accuracy_checking_details_….csv -gp cpu/accuracy_checking_details_….csv

Both tables are details of a pre-check of the same dump, on two devices or in two frameworks. See
docs/accuracy_check.md.""")


def add_api_precision_compare(commands: Any) -> None:
    parser = add_command(
        commands, "api_precision_compare", _run, tr("compare the pre-check results of two devices"), _EPILOG
    )
    parser.add_argument(
        "-npu", "--npu_csv_path", "-tp", "--target_path", dest="target", type=Path, metavar="CSV", required=True,
        help="details of the device under suspicion",
    )  # fmt: skip
    parser.add_argument(
        "-gpu", "--gpu_csv_path", "-gp", "--golden_path", dest="golden", type=Path, metavar="CSV", required=True,
        help="details of the device to trust",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--out_path", "--output_path", dest="output", type=Path, metavar="DIR", default=Path(),
        help="where the tables go (default: the current folder)",
    )  # fmt: skip
    parser.add_argument(
        "--profile", choices=("own", "v110", "latest"), default="own",
        help="rules and columns: own (default), those of msprobe 1.1.0, those of 26.x",
    )  # fmt: skip
    parser.add_argument("--thresholds", type=Path, metavar="YAML", help="thresholds that are not the usual ones")
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 when an API call fails")


def _run(options: argparse.Namespace) -> int:
    # Imported here: `msprobe -h` needs none of it.
    from msprobe_ms.accuracy.judging.thresholds import load_thresholds
    from msprobe_ms.accuracy.precision_compare import PREFIX, compare_precision, write_comparison
    from msprobe_ms.comparison.reporting.files import claimed_timestamp

    thresholds = load_thresholds(options.thresholds)
    comparison = compare_precision(options.target, options.golden, thresholds, options.profile)
    with claimed_timestamp(options.output, PREFIX) as timestamp:
        paths = write_comparison(comparison, options.output, timestamp, options.profile)
    print_lines([*comparison.lines(), *(tr("report: {path}", path=path) for path in paths)])
    return exit_status(options, divergent=comparison.failed)
