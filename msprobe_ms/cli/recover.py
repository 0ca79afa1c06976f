"""Console command ``recover``: rebuild the JSON files of a dump whose process was killed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from msprobe_ms.cli.common import DONE, FAILED, add_command, print_lines
from msprobe_ms.dump.names import counted_entries
from msprobe_ms.dump.writing.journal import JOURNAL_NAME


def add_recover(commands: Any) -> None:
    parser = add_command(commands, "recover", _recover, "rebuild the JSON files of a dump whose process was killed")
    parser.add_argument("folder", type=Path, metavar="DIR", help="a dump folder, one of its steps, or a rank of a step")


def _recover(options: argparse.Namespace) -> int:
    from msprobe_ms.dump.kernels.index import recover_kernels
    from msprobe_ms.dump.writing.export import recover

    failed = False
    indexed = list(recover_kernels(options.folder)) if options.folder.is_dir() else []
    has_journals = options.folder.is_dir() and any(options.folder.rglob(JOURNAL_NAME))
    for result in (*indexed, *(recover(options.folder) if has_journals or not indexed else ())):
        failed = failed or bool(result.problem)
        print_lines([f"{result.folder}: {result.problem or f'{counted_entries(result.entries)} recovered'}"])
    return FAILED if failed else DONE
