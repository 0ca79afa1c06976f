"""Helpers of the console commands: adding one, exit statuses, lists of numbers on a command line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from msprobe_ms.cli.language import add_language
from msprobe_ms.cli.parser import NO_VALUE, CommandParser, HelpFormatter, mistaken
from msprobe_ms.comparison.reporting.colours import paint_verdicts
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.log import logger
from msprobe_ms.support.text import one_a_line, show_path
from msprobe_ms.support.translation import tr, tr_join

if TYPE_CHECKING:
    from msprobe_ms.comparison.pairing.rules.files import Mappings

#: Exit statuses: done; a divergence was found, and ``--exit-code`` asked to tell; it could not be done.
DONE, DIVERGENT, FAILED = 0, 1, 2


#: Names of what is logged at least → their numbers in ``MSPROBE_LOG_LEVEL``.
LOG_LEVELS = {"debug": 0, "info": 1, "warning": 2, "error": 3, "fatal": 4, "critical": 4}


def set_log_level(name: str) -> None:
    """Log what is of this level at least, here and in processes that begin later; "info" leaves it as it is."""
    if name != "info":
        os.environ["MSPROBE_LOG_LEVEL"] = str(LOG_LEVELS[name])
        logger.setLevel("CRITICAL" if name == "fatal" else name.upper())


def add_command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], Any], summary: str, epilog: str | None = None
) -> CommandParser:
    """Add a command to ``commands`` (argparse's subparsers); ``run`` takes the options and returns the exit status,
    or what is to be called for it when the command has nothing more to print.

    ``epilog`` stands below its help as it is written.
    """
    parser: CommandParser = commands.add_parser(name, help=summary, epilog=epilog, formatter_class=HelpFormatter)
    parser.set_defaults(run=run)
    add_language(parser)
    return parser


def print_lines(lines: Iterable[str], file: Any = None) -> None:
    """Print lines, in which names from files may stand; to standard output where no ``file`` is given."""
    print(one_a_line(lines), file=file, flush=True)


def without_memory(error: MemoryError) -> str:
    """Return the message for a command that the memory did not suffice for."""
    return tr("not enough memory: {error}", error=error) if str(error) else tr("not enough memory")


def print_report(path: Path) -> None:
    """Print where a report is."""
    print_lines([tr("report: {path}", path=path)])


def print_verdict(lines: Iterable[str]) -> None:
    """Print lines with verdicts to standard output."""
    print(verdict_text(lines), flush=True)


def verdict_text(lines: Iterable[str]) -> str:
    """Join lines with verdicts for standard output, coloured where that is a terminal that wants colours."""
    text = one_a_line(lines)
    return paint_verdicts(text) if takes_colours(sys.stdout) else text


def takes_colours(file: TextIO) -> bool:
    """Return whether ``file`` is a terminal that shows colours, and the user has not declined them (NO_COLOR)."""
    return file.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def add_output(parser: Any, what: str) -> None:
    """Add the option ``-o DIR``; ``what`` goes there."""
    parser.add_argument("-o", "--output_path", type=_writable, metavar="DIR", help=what)


def _writable(text: str) -> Path:
    """Take a folder of the command line that can be written: that is better known before the work than after it."""
    from msprobe_ms.config.values import Rejected, writable_folder

    try:
        writable_folder(Path(text))
    except Rejected as rejected:
        raise mistaken(tr_join(tr("; "), (reason for _, reason in rejected.mistakes))) from None
    except (OSError, ValueError) as error:
        raise mistaken(
            tr("{text}: {getattr}", text=show_path(text), getattr=getattr(error, "strerror", None) or error)
        ) from None
    return Path(text)


def add_parameter_pairing(parser: argparse.ArgumentParser) -> None:
    """Add the options that name parameters as the other side does; `parameter_mappings` reads them."""
    pairing = parser.add_argument_group("pairing")
    pairing.add_argument(
        "-lm", "--layer_mapping", type=Path, metavar="YAML", nargs="?", const=NO_VALUE,
        help="renames of children; `msprobe compare ... -lm` of two dumps writes the file",
    )  # fmt: skip
    pairing.add_argument("-cm", "--cell_mapping", type=Path, metavar="YAML", help="renames of modules")
    pairing.add_argument("-dm", "--data_mapping", type=Path, metavar="YAML", help="pairs of full parameter names")


def parameter_mappings(options: argparse.Namespace, command: str) -> Mappings:
    """Read the files of these options. Raises UsageError for ``-lm`` without one."""
    from msprobe_ms.comparison.pairing.rules.files import load_mappings

    if options.layer_mapping is NO_VALUE:
        raise UsageError(
            tr(
                "{command}: -lm needs a file: modules are paired by what they compute, and parameters alone do not "
                "show that. `msprobe compare ... -lm` of two dumps writes such a file: layer_mapping_<time>.yaml",
                command=command,
            )
        )
    return load_mappings(options.cell_mapping, options.layer_mapping, options.data_mapping)


def output_folder(options: argparse.Namespace) -> Path:
    return options.output_path or Path("output")


def exit_status(options: argparse.Namespace, *, divergent: bool) -> int:
    """Return the exit status of a comparison that could be made."""
    return DIVERGENT if divergent and options.exit_code else DONE


def numbers(text: str) -> list[int]:
    """Read ``0,3`` and ``0-3`` of the command line."""
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, dash, last = part.partition("-")
        if not (first.isdecimal() and (last.isdecimal() or not dash)) or len(first) + len(last) > 12:
            raise mistaken(tr("{part} is no number; accepted are 0,3 or 0-3", part=repr(part)))
        found += range(int(first), int(last or first) + 1)
    return found


def seconds(text: str) -> float:
    """Read a number of seconds of the command line."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < 1e6:
        raise mistaken(tr("{text}; accepted is a number of seconds", text=repr(text)))
    return found
