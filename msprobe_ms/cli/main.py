"""Console command ``msprobe``: its parser, and what becomes of errors."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from msprobe_ms import __version__
from msprobe_ms.cli.common import DONE, FAILED
from msprobe_ms.cli.compare import add_compare, add_merge_result
from msprobe_ms.cli.compare_kernels import add_overflow_check
from msprobe_ms.cli.dump_files import add_convert, add_index, add_recover
from msprobe_ms.cli.run import add_run
from msprobe_ms.cli.weights import add_compare_weights
from msprobe_ms.compat.neighbour import warn_of_conflict
from msprobe_ms.support.errors import MsprobeError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status: 0 done, 1 divergence found with ``--exit-code``, 2 an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal without UTF-8 is no reason to fail at a name
            stream.reconfigure(errors="backslashreplace")
    warn_of_conflict()
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return FAILED
    try:
        return int(options.run(options))
    except MsprobeError as error:
        print(f"msprobe: {error}", file=sys.stderr)
        return FAILED
    except BrokenPipeError:
        # Whoever read our output has seen enough; what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        print("msprobe: interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="msprobe", description="Find where two training runs begin to differ.")
    parser.add_argument("--version", action="version", version=f"msprobe_ms {__version__}")
    parser.add_argument(
        "-f", "--framework", choices=("mindspore", "pytorch"), help="the target's framework (optional: dumps tell it)"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    add_compare(commands)
    add_merge_result(commands)
    add_compare_weights(commands)
    add_convert(commands)
    add_recover(commands)
    add_run(commands)
    add_index(commands)
    add_overflow_check(commands)
    return parser
