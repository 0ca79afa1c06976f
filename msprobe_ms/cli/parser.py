"""The parser of the console commands: as argparse's, and it says what a misspelt option or command may have meant."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

from msprobe_ms.support.columns import display_width
from msprobe_ms.support.translation import Message, tr, tr_list, translated

#: What argparse says of a value that is not among the accepted ones, with quotes or without.
_INVALID = re.compile(r"invalid choice: (?P<quote>['\"]?)(?P<given>.*?)(?P=quote) \(choose from (?P<accepted>.*)\)\Z")

#: What argparse itself says of mistakes, and in its help.
_MISTAKES = (
    tr("argument {name}: {mistake}"),
    tr("the following arguments are required: {names}"),
    tr("unrecognized arguments: {names}"),
    tr("one of the arguments {names} is required"),
    tr("not allowed with argument {name}"),
    tr("expected one argument"),
    tr("expected at most one argument"),
    tr("expected at least one argument"),
    tr("expected {number} argument"),
    tr("expected {number} arguments"),
    tr("ignored explicit argument {value}"),
    tr("ambiguous option: {option} could match {options}"),
    tr("invalid {kind} value: {value}"),
    tr("invalid choice: {value} (choose from {choices}) (did you mean {meant}?)"),
    tr("invalid choice: {value} (choose from {choices})"),
    tr("invalid choice: {value} (did you mean {meant}?)"),
    tr("invalid choice: {value}"),
)
_HELP = (
    tr("options"),
    tr("positional arguments"),
    tr("show this help message and exit"),
    tr("show program's version number and exit"),
)

#: What an option holds that was given without the value that it needs, where its command says itself what to give.
NO_VALUE = object()

#: The colon behind a heading in Chinese.
_HEADING = re.compile("^(.*[\u4e00-\u9fff].*):$", re.MULTILINE)
#: What does not begin a line.
_CLOSING = "，。；：、！？）》」”"
#: Accepted values that are all named beside the one that may be meant.
_FEW = 8


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Formats help as argparse does, in the language of the user; descriptions stand as they are written."""

    def format_help(self) -> str:
        """The help; behind a heading in Chinese stands its own colon."""
        return _HEADING.sub(r"\1：", super().format_help())

    def add_usage(self, usage: Any, actions: Any, groups: Any, prefix: str | None = None) -> None:
        super().add_usage(usage, actions, groups, translated(tr("usage: ")) if prefix is None else prefix)

    def start_section(self, heading: str | None) -> None:
        super().start_section(heading and _spoken(heading))

    def add_text(self, text: str | None) -> None:
        super().add_text(text and _spoken(text))

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        if action.const is NO_VALUE:
            return str(action.metavar or default_metavar)
        return super()._format_args(action, default_metavar)

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help and _spoken(action.help)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return super()._split_lines(text, width) if text.isascii() else list(_wide_lines(text, width))


class CommandParser(argparse.ArgumentParser):
    """Parses a command line; a mistake is told with the usage of the command that it was made in."""

    #: Whether the first word that is no option is the ``script``, and all behind it its ``arguments`` as they stand.
    runs_script = False

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Parse all arguments; exits with 2 where one is not known, and says which may have been meant."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            parser = self._command(getattr(options, "command", None))
            parser.error(f"unrecognized arguments: {' '.join(map(parser.unknown, unknown))}")
        return options

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse the arguments that are known; of those of a script argparse would take some for options of ours."""
        if not self.runs_script:
            return super().parse_known_args(args, namespace)
        words = list(sys.argv[1:] if args is None else args)
        place = self._behind_options(words)
        options, unknown = super().parse_known_args(words[:place], namespace)
        if script := words[place + 1 :] if words[place : place + 1] == ["--"] else words[place:]:
            options.script, options.arguments = script[0], script[1:]
        return options, unknown

    def _behind_options(self, words: Sequence[str]) -> int:
        """Where the options end, with their values."""
        place = 0
        while place < len(words) and words[place].startswith("-") and words[place] not in ("-", "--"):
            takes = self._takes(words[place])
            place += 1
            if takes is None or (takes == "?" and place < len(words) and not words[place].startswith("-")):
                place += 1
        return min(place, len(words))

    def _takes(self, word: str) -> int | str | None:
        """How many values the option takes, as argparse's ``nargs`` says it: None is one."""
        found = {each.dest: each for name, each in self._option_string_actions.items() if name.startswith(word)}
        action = self._option_string_actions.get(word) or (next(iter(found.values())) if len(found) == 1 else None)
        return 0 if action is None else action.nargs

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
                message = f"{message[: found.start()]}invalid choice: {found['given']!r}"
            message += meant
        self.print_usage(sys.stderr)
        told = translated(tr("error: {mistake}", mistake=_mistake(message)))
        self.exit(2, f"{self.prog}: {told}\n")

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
    return tr(" (did you mean {bare}?)", bare=bare[near[0]]) if near else ""


def mistaken(message: str) -> argparse.ArgumentTypeError:
    """Return the error of a value that cannot be taken; argparse keeps its text alone, which is told already."""
    return argparse.ArgumentTypeError(translated(message))


def _spoken(text: str) -> str:
    """A text of a parser in the language of the user: help is given as it is, all of it can be translated."""
    return translated(text if isinstance(text, Message) else tr(text))


def _mistake(text: str) -> str:
    """What argparse says, as a message."""
    for template in _MISTAKES:
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.*?)", re.escape(template))
        if found := re.fullmatch(pattern, text, re.DOTALL):
            return tr(template, **{name: _part(name, text) for name, text in found.groupdict().items()})
    return text


def _part(name: str, text: str) -> str:
    """A part of what argparse says, as a message or as it stands."""
    if name == "choices":
        return tr_list(each.strip("'\"") for each in text.split(", "))
    return _mistake(text) if name == "mistake" else text


def _wide_lines(text: str, width: int) -> Iterator[str]:
    """Break a text into lines by what a terminal takes for it: a Chinese character is two wide, and may end a line."""
    line, taken = "", 0
    for word in re.findall(r"[!-~]+|\s+|.", text):
        wide = display_width(word)
        if line and taken + wide > width and word not in _CLOSING:
            yield line.rstrip()
            line, taken = "", 0
        if line or not word.isspace():
            line, taken = line + (" " if word.isspace() else word), taken + wide
    yield line.rstrip()
