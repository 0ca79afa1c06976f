"""Console command ``config_check``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msprobe_ms.cli.common import (
    DONE,
    add_command,
    add_parameter_pairing,
    exit_status,
    parameter_mappings,
    print_lines,
    print_verdict,
)
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.text import listed
from msprobe_ms.support.translation import tr, tr_join

_EPILOG = tr("""\
examples:
  msprobe config_check -d train.sh model.yaml --dump dump/step0 -o target.zip     (in each environment)
  msprobe config_check -c target.zip golden.zip -o out
  msprobe config_check -c mindspore.zip pytorch.zip -lm layer_mapping.yaml -o out

It collects the versions of packages, the variables that devices and frameworks read, the settings of launch files and
scripts (of a .py: constants, defaults of options, arguments of optimizers, data and seeds), and, with a dump of L0 or
mix, figures of the data and of the weights. Values that may be secret are not kept. Weights pair as in compare_weights;
-lm FILE, -cm FILE or -dm FILE pairs names that differ. See docs/environment.md.""")


def add_config_check(commands: Any) -> None:
    told = tr("compare the environments of two trainings: packages, variables, settings, data and weights")
    parser = add_command(commands, "config_check", _run, told, _EPILOG)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "-d", "--dump_files", nargs="*", type=Path, metavar="FILE",
        help="collect this environment; FILEs hold settings: shell scripts, yaml, json, Python scripts",
    )  # fmt: skip
    what.add_argument(
        "-c", "--compare", nargs=2, type=Path, metavar=("TARGET", "GOLDEN"), help="compare two collections"
    )
    parser.add_argument("--dump", type=Path, metavar="PATH", help="with -d: a dump that tells of data and weights")
    parser.add_argument(
        "-o", "--output_path", type=Path, metavar="PATH",
        help="with -d: the collection, .zip or .json (default environment.zip); with -c: a folder (default ./output)",
    )  # fmt: skip
    parser.add_argument("--csv", action="store_true", help="write the table as csv (default: xlsx)")
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 if there is an error")
    add_parameter_pairing(parser)


def _not_collected(options: argparse.Namespace, gaps: Mapping[str, list[str]]) -> Iterator[str]:
    """Say what a comparison of this collection cannot see."""
    from msprobe_ms.environment.collect import SCRIPTS

    if not options.dump_files:
        yield tr("  no settings are compared: no file that holds settings was given")
    if missing := gaps[SCRIPTS]:
        yield tr(
            "  of {scripts} only the options in the shell script are compared, not the defaults and the settings in "
            "the Python script: give it as well",
            scripts=listed(missing),
        )
    if options.dump is None:
        yield tr("  data and weights are not compared: give a dump with --dump")


def _run(options: argparse.Namespace) -> int:
    from msprobe_ms.environment.collect import GAPS, SECTIONS, collect, read_collection, write_collection
    from msprobe_ms.environment.compare import Status, compare_collections, section_title
    from msprobe_ms.environment.report import environment_lines, gap_lines, write_environments

    mappings = parameter_mappings(options, "config_check")
    if options.compare is None:
        if options.layer_mapping or options.cell_mapping or options.data_mapping:
            raise UsageError(tr("config_check: -lm, -cm and -dm belong to -c, which compares"))
        path = options.output_path or Path("environment.zip")
        if path.is_dir():
            raise UsageError(
                tr("config_check: -o {path} is a folder; give the name of a file, such as {path}/target.zip", path=path)
            )
        collection = collect(options.dump_files, options.dump, os.environ)
        write_collection(collection, path)
        counts = [
            tr("{count} {section}", count=len(collection[section]), section=section_title(section))
            for section in SECTIONS
        ]
        print_lines(
            [
                tr("{path}: {counts}", path=path, counts=tr_join(", ", counts)),
                *_not_collected(options, collection[GAPS]),
            ]
        )
        return DONE
    if options.dump is not None:
        raise UsageError(tr("config_check: --dump belongs to -d; a collection holds what it had of a dump"))
    target, golden = map(read_collection, options.compare)
    rows = compare_collections(target, golden, mappings)
    gaps = list(gap_lines(target, golden))
    print_verdict(environment_lines(rows, gaps))
    folder = options.output_path or Path("output")
    page, table = write_environments(rows, folder, options.compare, gaps, csv=options.csv)
    print_lines([tr("report: {path}", path=page), tr("table: {each}", each=table)])
    return exit_status(options, divergent=any(row.status is Status.ERROR for row in rows))
