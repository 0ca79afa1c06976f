"""The parser of the console commands: as argparse's, and it says what a misspelt option or command may have meant."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

#: What argparse says of a value that is not among the accepted ones, with quotes or without.
_INVALID = re.compile(r"invalid choice: (?P<quote>['\"]?)(?P<given>.*?)(?P=quote) \(choose from (?P<accepted>.*)\)\Z")

#: Accepted values that are all named beside the one that may be meant.
_FEW = 8


class CommandParser(argparse.ArgumentParser):
    """Parses a command line; a mistake is told with the usage of the command that it was made in."""

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Parse all arguments; exits with 2 where one is not known, and says which may have been meant."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            parser = self._command(getattr(options, "command", None))
            parser.error(f"unrecognized arguments: {' '.join(map(parser.unknown, unknown))}")
        return options

    def unknown(self, argument: str) -> str:
        """Return an argument that is not known, with what it may have meant."""
        name, _, _ = argument.partition("=")
        options = self._option_string_actions if name.startswith("-") else ()
        return f"{argument}{_meant(name, options)}"

    def error(self, message: str) -> NoReturn:
        if found := _INVALID.search(message):
            accepted = [each.strip("'\"") for each in found["accepted"].split(", ")]
            meant = _meant(found["given"], accepted)
            if meant and len(accepted) > _FEW:
                message = message[: found.start()] + f"invalid choice: {found['given']!r}"
            message += meant
        super().error(message)

    def _command(self, name: str | None) -> CommandParser:
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction) and name in action.choices:
                parser: Any = action.choices[name]
                return parser if isinstance(parser, CommandParser) else self
        return self


def _meant(given: str, accepted: Iterable[str]) -> str:
    """`` (did you mean -lm?)`` for what is near one that is accepted, however many dashes it has; else nothing."""
    bare = {each.lstrip("-").lower().replace("-", "_"): each for each in accepted}
    near = difflib.get_close_matches(given.lstrip("-").lower().replace("-", "_"), bare, n=1)
    return f" (did you mean {bare[near[0]]}?)" if near else ""
