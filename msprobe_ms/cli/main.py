"""Console command ``msprobe``: its parser, and what becomes of errors."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import cache

from msprobe_ms import __version__
from msprobe_ms.cli.accuracy.acc_check import add_acc_check
from msprobe_ms.cli.accuracy.precision_compare import add_api_precision_compare
from msprobe_ms.cli.accuracy.prove import add_prove
from msprobe_ms.cli.accuracy.receiving import add_certificates
from msprobe_ms.cli.accuracy.single_api import add_op_generate, add_run_overflow_check
from msprobe_ms.cli.bisect import add_bisect
from msprobe_ms.cli.common import FAILED, without_memory
from msprobe_ms.cli.comparison.compare import add_compare
from msprobe_ms.cli.comparison.merge_result import add_merge_result
from msprobe_ms.cli.dump_files import add_convert, add_index, add_recover
from msprobe_ms.cli.environment import add_config_check
from msprobe_ms.cli.export import add_export, add_graph_visualize
from msprobe_ms.cli.gradients import add_grad_compare
from msprobe_ms.cli.help.completion import add_completion
from msprobe_ms.cli.help.config import add_config
from msprobe_ms.cli.help.doctor import add_doctor
from msprobe_ms.cli.help.refused import add_refused
from msprobe_ms.cli.language import add_language, asked_language
from msprobe_ms.cli.llm import add_llm
from msprobe_ms.cli.non_finite import add_nan_analyze, add_overflow_check
from msprobe_ms.cli.output import lasting_output
from msprobe_ms.cli.parse import add_parse
from msprobe_ms.cli.parser import CommandParser, HelpFormatter
from msprobe_ms.cli.run import add_run
from msprobe_ms.cli.view import add_view
from msprobe_ms.cli.weights import add_compare_weights
from msprobe_ms.compat.neighbour import warn_of_conflict
from msprobe_ms.support.errors import MsprobeError
from msprobe_ms.support.log import warn_of_language
from msprobe_ms.support.process import begin_no_threads, return_large_arrays, skip_last_garbage_collection
from msprobe_ms.support.text import for_terminal
from msprobe_ms.support.translation import speaking, tr, translated


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status: 0 done, 1 divergence found with ``--exit-code``, 2 an error.

    What a script that ``run`` runs raises passes.
    """
    words = sys.argv[1:] if arguments is None else arguments
    with speaking(asked_language(words)):
        with lasting_output():
            status = _command(words, own=arguments is None)
        if callable(status):
            return status()
        if arguments is None:  # the process is the command's own
            skip_last_garbage_collection()
        return status


def _command(arguments: Sequence[str], *, own: bool) -> int | Callable[[], int]:
    """Do what was asked for; returns the exit status, or the script that is to be run as if nothing had been before.

    ``own``: the process is the command's own.
    """
    warn_of_conflict()
    warn_of_language()
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return FAILED
    options.own = own
    if own and options.command == "compare":
        return_large_arrays()
        begin_no_threads()
    try:
        status: int | Callable[[], int] = options.run(options)
    except MsprobeError as error:
        print(f"msprobe: {for_terminal(error.message)}", file=sys.stderr)
        return FAILED
    except OSError as error:  # a path that cannot even be looked at: too long a name, a folder that nobody may enter
        where = f"{for_terminal(str(error.filename))}: " if error.filename is not None else ""
        what = tr("{strerror}; accepted are paths that can be read", strerror=error.strerror or error)
        print(f"msprobe: {where}{translated(what)}", file=sys.stderr)
        return FAILED
    except MemoryError as error:
        print(f"msprobe: {translated(without_memory(error))}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("msprobe:", translated(tr("interrupted")), file=sys.stderr)
        return 130
    return status


@cache
def _parser() -> argparse.ArgumentParser:
    """The parser of all commands; a process that runs several makes it once. Its texts are translated when printed."""
    parser = CommandParser(
        prog="msprobe", formatter_class=HelpFormatter, description=tr("Find where two training runs begin to differ.")
    )
    parser.add_argument("--version", action="version", version=f"msprobe_ms {__version__}")
    add_language(parser)
    parser.add_argument(
        "-f",
        "--framework",
        choices=("mindspore", "pytorch"),
        help="the target's framework (optional: read from the dumps)",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    add_compare(commands)
    add_view(commands)
    add_export(commands)
    add_graph_visualize(commands)
    add_merge_result(commands)
    add_compare_weights(commands)
    add_grad_compare(commands)
    add_config_check(commands)
    add_bisect(commands)
    add_convert(commands)
    add_parse(commands)
    add_recover(commands)
    add_run(commands)
    add_llm(commands)
    add_index(commands)
    add_overflow_check(commands)
    add_nan_analyze(commands)
    add_api_precision_compare(commands)
    add_acc_check(commands)
    add_certificates(commands)
    add_run_overflow_check(commands)
    add_op_generate(commands)
    add_prove(commands)
    add_config(commands)
    add_doctor(commands)
    add_completion(commands, _parser)
    add_refused(commands)
    return parser
