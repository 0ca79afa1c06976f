"""Commands of msprobe that are not here: each says so, and what does that work."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from msprobe_ms.cli.common import add_command
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr

_INSTEAD = {
    "data2db": tr("it writes what one viewer reads; msprobe compare writes trends over steps, msprobe view draws them"),
    "offline_dump": tr(
        "it needs a device with Ascend's tools (CANN), which write such dumps; msprobe compare reads them"
    ),
    "install_deps": tr("nothing is to be installed: pip install msprobe-ms brings all that is needed"),
}


def add_refused(commands: Any) -> None:
    for name, instead in _INSTEAD.items():
        parser = add_command(commands, name, _refuse, tr("refused: {partition}", partition=instead.partition(";")[0]))
        parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
        parser.prefix_chars = "\0"  # whatever was typed, it is this command that is not here


def _refuse(options: argparse.Namespace) -> NoReturn:
    raise UsageError(
        tr("{command} is not supported: {instead}", command=options.command, instead=_INSTEAD[options.command])
    )
