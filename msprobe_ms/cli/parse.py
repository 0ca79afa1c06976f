"""Console command ``parse``: look at tensor files and dumps interactively."""

from __future__ import annotations

import argparse
import cmd
import shlex
import sys
from pathlib import Path
from typing import Any, NoReturn

from msprobe_ms.cli.common import DONE, FAILED, add_command, print_lines, print_verdict, without_memory
from msprobe_ms.support.errors import MsprobeError, UsageError
from msprobe_ms.support.translation import tr

_EPILOG = tr("""\
commands at the prompt (each with -h), also one a line from standard input:
  pt -n FILE                     print what a tensor file holds: shape, dtype, statistics, first and last elements
  cn -m FILE -g FILE             compare two tensor files, the one under suspicion and the one to trust
  dc -n FILE|DIR [-f npy|txt|csv] [-out DIR]   write tensor files as npy (the usual), txt or csv
  vc -m DUMP -g DUMP             compare two dumps; msprobe compare writes tables and a page too
  exit                           leave

Files end in .npy, .pt or .bin. The exit status is 2 where a line of standard input could not be done.""")


def add_parse(commands: Any) -> None:
    add_command(commands, "parse", _parse, tr("look at tensor files and dumps interactively"), _EPILOG)


def _parse(_: argparse.Namespace) -> int:
    prompt = Prompt()
    prompt.cmdloop(prompt.introduction)
    return FAILED if prompt.failed and not sys.stdin.isatty() else DONE


class _Arguments(argparse.ArgumentParser):
    """Says what is wrong with a line, and does not end the process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(tr("{prog}: {message}; {prog} -h tells its options", prog=self.prog, message=message))

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:  # after the help was printed
        raise _HelpPrinted


class _HelpPrinted(Exception):
    """A line asked for help alone."""


class Prompt(cmd.Cmd):
    """One session. A line that cannot be done says why, and the next is asked for."""

    prompt = tr("msprobe parse >>> ") if sys.stdin is not None and sys.stdin.isatty() else ""
    introduction = tr("help lists the commands, exit leaves") if prompt else None

    def __init__(self) -> None:
        super().__init__()
        #: Whether any line could not be done.
        self.failed = False

    def onecmd(self, line: str) -> bool:
        try:
            return bool(super().onecmd(line))
        except _HelpPrinted:
            return False
        except (MsprobeError, OSError, ValueError) as error:  # ValueError: quotes that do not end, a NUL in a path
            self.failed = True
            print_lines([tr("msprobe: {error}", error=error)], sys.stderr)
        except MemoryError as error:
            self.failed = True
            print_lines([tr("msprobe: {error}", error=without_memory(error))], sys.stderr)
        except KeyboardInterrupt:
            print_lines(["interrupted"], sys.stderr)
        return False

    def emptyline(self) -> bool:
        return False  # and not the command before once more

    def default(self, line: str) -> None:
        if line == "EOF":
            raise EOFError
        word = line.split()[0]
        raise UsageError(tr("{word}: no command; accepted are pt, cn, dc, vc, help, exit", word=word))

    def do_help(self, _: str) -> None:
        """List the commands."""
        print_lines(_EPILOG.splitlines())

    def do_exit(self, _: str) -> bool:
        """Leave."""
        return True

    do_quit = do_EOF = do_exit

    def do_pt(self, line: str) -> None:
        """Print what a tensor file holds."""
        options = _read("pt", line, "-n")
        from msprobe_ms.tensor_file_report import described

        print_lines(described(options.n))

    def do_cn(self, line: str) -> None:
        """Compare two tensor files."""
        options = _read("cn", line, "-m", "-g")
        from msprobe_ms.tensor_file_report import differences

        print_lines(differences(options.m, options.g))

    def do_dc(self, line: str) -> None:
        """Write tensor files in another form."""

        options = _read("dc", line, "-n", form=True)
        from msprobe_ms.convert import Source, convert

        for result in convert([options.n], options.f, options.out, Source()):
            self.failed = self.failed or bool(result.problem)
            told = (
                tr("msprobe: {problem}", problem=result.problem)
                if result.problem
                else tr("{written}: {told}", written=result.written, told=result.told)
            )
            print_lines([told], sys.stderr if result.problem else None)

    def do_vc(self, line: str) -> None:
        """Compare two dumps."""

        options = _read("vc", line, "-m", "-g")
        from msprobe_ms.comparison.api.compare import compare

        print_verdict(str(compare(options.m, options.g)).splitlines())


def _read(name: str, line: str, *paths: str, form: bool = False) -> argparse.Namespace:
    """Read the options of one line: those that name paths, and what becomes of files. Raises UsageError."""
    parser = _Arguments(prog=name)
    for option in paths:
        parser.add_argument(option, type=Path, metavar="PATH", required=True)
    if form:
        parser.add_argument("-f", choices=("npy", "txt", "csv"), default="npy")
        parser.add_argument("-out", type=Path, metavar="DIR")
    return parser.parse_args(shlex.split(line))
