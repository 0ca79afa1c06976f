"""Commands of msprobe that are not here: each says so, and what does that work."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from msprobe_ms.cli.common import add_command
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr, tr_join

#: Command → why it is not here, and what does that work.
_REFUSED = {
    "data2db": (
        tr("it writes what one viewer reads"),
        tr("msprobe compare writes trends over steps, msprobe view draws them"),
    ),
    "offline_dump": (
        tr("it needs a device with Ascend's tools (CANN), which write such dumps"),
        tr("msprobe compare reads them"),
    ),
    "install_deps": (tr("pip install msprobe-ms installs everything needed"), ""),
}


def add_refused(commands: Any) -> None:
    for name, (why, _) in _REFUSED.items():
        parser = add_command(commands, name, _refuse, tr("refused: {why}", why=why))
        parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
        parser.prefix_chars = "\0"  # whatever was typed, it is this command that is not here


def _refuse(options: argparse.Namespace) -> NoReturn:
    told = tr_join(tr("; "), filter(None, _REFUSED[options.command]))
    raise UsageError(tr("{command} is not supported: {told}", command=options.command, told=told))
