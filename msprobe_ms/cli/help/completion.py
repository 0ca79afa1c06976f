"""Console command ``completion``: the script by which a shell completes commands, options and files."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msprobe_ms.cli.common import DONE, add_command
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr

_EPILOG = tr("""\
examples:
  msprobe completion bash > ~/.local/share/bash-completion/completions/msprobe
  msprobe completion zsh > ~/.zfunc/_msprobe          (with ~/.zfunc in fpath, before compinit)

It needs shtab once: pip install "msprobe-ms[completion]". Print the script again after an update.""")


def add_completion(commands: Any, whole: Callable[[], argparse.ArgumentParser]) -> None:
    """Add the command; ``whole`` makes the parser of all commands."""
    told = tr("print the script that completes commands, options and files in a shell")
    parser = add_command(commands, "completion", lambda options: _run(options, whole()), told, _EPILOG)
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="the shell that it is for")


def _run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    try:
        import shtab
    except ModuleNotFoundError:
        how = tr('pip install "msprobe-ms[completion]"')
        raise UsageError(tr("completion: shtab is not installed, and it writes the script: {how}", how=how)) from None
    _complete_files(parser)
    print(shtab.complete(parser, shell=options.shell))
    return DONE


def _complete_files(parser: argparse.ArgumentParser) -> None:
    """Have paths completed as files."""
    import shtab

    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in dict.fromkeys(action.choices.values()):
                _complete_files(inner)
        elif action.type is Path or action.metavar in ("PATH", "FILE", "DIR", "YAML", "SCRIPT"):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
