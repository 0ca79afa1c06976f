"""The option ``--lang``, which every command takes, before its name or after it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from msprobe_ms.support.translation import LANGUAGES

_OPTION = "--lang"


def add_language(parser: argparse.ArgumentParser) -> None:
    """Add the option; what it says was read before the others, by `asked_language`."""
    parser.add_argument(
        _OPTION, choices=tuple(LANGUAGES), default=argparse.SUPPRESS, help="language of messages and of the report page"
    )


def asked_language(arguments: Sequence[str]) -> str | None:
    """Return the language that a command line asks for; None where it asks for none, or for one that is not there.

    Help and mistakes are told in it as well, so it is read before the rest. Of a script that ``run`` runs an option of
    this name can do no more than choose the language of our messages.
    """
    for place, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name == _OPTION:
            wanted = value if equals else next(iter(arguments[place + 1 :]), "")
            return wanted if wanted in LANGUAGES else None
    return None
