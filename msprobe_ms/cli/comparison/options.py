"""Options of ``compare``: the dumps, the report, and what of the one stands beside what of the other."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msprobe_ms.cli.common import (
    LOG_LEVELS,
    add_output,
    numbers,
)
from msprobe_ms.support.translation import tr

if TYPE_CHECKING:
    pass

#: Levels of msit that ask for the ordinary comparison.
_LEVELS = ("layer", "module", "api")

_NODE_HELP = tr(
    "explain one node in detail: the name of an entry, a value, a module or a function, "
    "of either dump; -o also writes the text to a file; with --exit-code the status is 1 if this node differs"
)


def add_sides(sides: Any) -> None:
    """Add the options that name the dumps, and choose among their ranks and steps."""
    dump = tr("a dump.json, a rank or step folder, a dump root")
    sides.add_argument("-i", "--input_path", type=Path, metavar="FILE", help="compare.json naming both dumps")
    sides.add_argument(
        "-tp", "--target_path", "-mp", "--my-path", type=Path, metavar="PATH",
        help=tr("the dump under suspicion: {dump}; or a tensor file, to compare with that of -gp", dump=dump),
    )  # fmt: skip
    sides.add_argument(
        "-gp", "--golden_path", "--golden-path", type=Path, metavar="PATH",
        help=tr("the dump to trust: {dump}; or a tensor file, or a metadata.json of pairs of tensors", dump=dump),
    )  # fmt: skip
    chosen = tr("to compare: 0,1 or 0-3 (default all)")
    sides.add_argument("--rank", type=numbers, metavar="N,N,…", help=tr("the ranks {chosen}", chosen=chosen))
    sides.add_argument("--step", type=numbers, metavar="N,N,…", help=tr("the steps {chosen}", chosen=chosen))
    sides.add_argument("-m", "--mode", type=_mode, default="auto", help=tr("only auto: the kind of input is detected"))
    sides.add_argument("--scheduler", metavar="ADDRESS", help="compare ranks and steps on the Dask cluster there")


def _mode(text: str) -> str:
    if text != "auto":
        raise argparse.ArgumentTypeError(
            tr("{text} is not supported: dumps of graphs and models offline are not read", text=repr(text))
        )
    return text


def add_report(report: Any) -> None:
    """Add the options that say what is judged how, and what is written of it."""
    add_output(report, tr("where reports go (default ./output)"))
    report.add_argument("-s", "--stack_mode", action="store_true", help="add the column of call sites")
    report.add_argument("-c", "--compare_only", action="store_true", help="no advisor file")
    report.add_argument(
        "--advice", choices=("mindstudio",), help="the advisor file in the form of MindStudio's analyzer"
    )
    form = report.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="write the table as csv")
    form.add_argument("--xlsx", action="store_true", help="write the table as xlsx (the default)")
    report.add_argument("--no-html", action="store_true", help="no page to look at (compare_report_….html)")
    report.add_argument(
        "--html-rows", choices=("all",), help="put the figures of all values in the page (default: at most 12 MB)"
    )
    report.add_argument("--html-no-stacks", action="store_true", help="no call sites and no paths in the page")
    report.add_argument(
        "--profile",
        choices=("v110", "latest", "own", "maca"),
        help="columns and rules of msprobe 1.1.0 (default with -i), of 26.x, of MetaX, or our own (default with -tp)",
    )
    report.add_argument(
        "--thresholds", type=Path, metavar="YAML", help="yaml file that changes tolerances and thresholds"
    )
    report.add_argument(
        "-alg", "--custom-algorithms", nargs="+", action="extend", default=[], metavar="FILE.py:FUNCTION",
        help="metrics of your own for real data: (golden, target) -> (value, message)",
    )  # fmt: skip
    report.add_argument(
        "-da", "--diff_analyze", action="store_true",
        help="write no tables, only the ranks and calls where the error begins (diff_analyze_….json)",
    )  # fmt: skip
    report.add_argument(
        "-tensor_log", "--is_print_compare_log", action="store_true", help="log the result of each value"
    )
    report.add_argument(
        "--consistent_check", action="store_true",
        help="one side is an inference: no gradients, and modules are paired as with -lm",
    )  # fmt: skip
    report.add_argument(
        "--backend",
        choices=("fsdp", "megatron"),
        help="no effect: with --consistent_check names are paired automatically",
    )
    report.add_argument("--exit-code", action="store_true", help="exit with 1 when the dumps diverge")
    report.add_argument("--node", metavar="NAME", help=_NODE_HELP)
    report.add_argument(
        "-cl", "--compare_level", "-cmp-level", "--cmp-level", choices=("token", "logits", *_LEVELS),
        help="token, logits: compare two inferences, find the first generated token that differs, and say whether it "
        "was a tie or an error; layer, module, api: compare everything that both dumps hold (the default)",
    )  # fmt: skip
    report.add_argument("-w", "--weight", action="store_true", help="both are checkpoints: compare parameters")
    report.add_argument("-l", "--log-level", choices=LOG_LEVELS, default="info", help="what is logged (default info)")
    report.add_argument("--logits", metavar="NAME", help="with -cl: the module that gives the logits (lm_head)")


def add_pairing(pairing: Any) -> None:
    """Add the options that say what of the one dump stands beside what of the other."""
    pairing.add_argument(
        "-f", "-fm", "--fuzzy_match", action="store_true", help="ignore call indices while pairing entries"
    )
    pairing.add_argument(
        "-cm", "--cell_mapping", nargs="?", const=True, type=Path, metavar="YAML",
        help="pair Cells with Modules; the file lists renamed modules",
    )  # fmt: skip
    pairing.add_argument(
        "-lm", "--layer_mapping", nargs="?", const=True, type=Path, metavar="YAML",
        help="pair renamed layers: the file lists renames by class; without a file they are found from the dumps "
        "and written to the output folder",
    )  # fmt: skip
    pairing.add_argument(
        "-am", "--api_mapping", nargs="?", const=True, type=Path, metavar="YAML",
        help="pair functions of two frameworks outside modules, too: by the built-in table and the rules of a file",
    )  # fmt: skip
    pairing.add_argument("-dm", "--data_mapping", type=Path, metavar="YAML", help="a file that pairs full names")
    pairing.add_argument(
        "-mf", "--op-mapping-file", type=Path, metavar="JSON",
        help="kinds of operations whose calls pair in order: the file, or the folder of op_mapping_file.json",
    )  # fmt: skip
