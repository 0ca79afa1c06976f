"""Commands of msprobe that are not here: each says so, and what does that work."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from msprobe_ms.cli.common import add_command
from msprobe_ms.support.errors import UsageError

_INSTEAD = {
    "data2db": "it writes what one viewer reads; msprobe compare writes trends over steps, msprobe view draws them",
    "offline_dump": "it needs a device with Ascend's tools (CANN), which write such dumps; msprobe compare reads them",
    "install_deps": "nothing is to be installed: pip install msprobe-ms brings all that is needed",
}


def add_refused(commands: Any) -> None:
    for name, instead in _INSTEAD.items():
        parser = add_command(commands, name, _refuse, f"refused: {instead.partition(';')[0]}")
        parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
        parser.prefix_chars = "\0"  # whatever was typed, it is this command that is not here


def _refuse(options: argparse.Namespace) -> NoReturn:
    raise UsageError(f"{options.command} is not supported: {_INSTEAD[options.command]}")
