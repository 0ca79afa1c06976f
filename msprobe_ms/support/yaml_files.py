"""Yaml files of users: read within a bound, what is wrong with one in words, and names written into one."""

from __future__ import annotations

import codecs
import json
from pathlib import Path
from typing import Any

import yaml

from msprobe_ms.support.files import open_regular
from msprobe_ms.support.translation import tr

#: libyaml is about eight times faster; both give the same.
FASTEST_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TEXT_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
#: Levels of what users write, and many more.
_DEEPEST = 50


class UnreadableError(Exception):
    """Why a file is no text: to be told after its name."""


def read_text(path: Path, most: int) -> str:
    """Read a text file of at most ``most`` bytes: UTF-8, or UTF-16 where a byte order mark says so, as yaml has it.

    :raises UnreadableError: it cannot be read, is larger, or is no text
    """
    try:
        with open_regular(Path(path)) as file:
            raw = file.read(most + 1)
    except OSError as error:
        reason = error.strerror or error
        raise UnreadableError(
            tr("cannot be read: {reason}; a readable {kind} is needed", reason=reason, kind=_kind_of(path))
        ) from None
    if len(raw) > most:
        shown = tr("{most} MiB", most=most >> 20) if most >= 1 << 20 else tr("{most} KiB", most=most >> 10)
        raise UnreadableError(tr("larger than {shown}, the most that is read", shown=shown))
    try:
        return raw.decode("utf-16" if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UnreadableError(tr("line {line} is not UTF-8 text; save the file as UTF-8", line=line)) from None


def _kind_of(path: Path) -> str:
    """What a user meant to give, by the name."""
    return {".sh": tr("shell script"), ".py": tr("Python file")}.get(Path(path).suffix, tr("yaml file"))


def read_shallow(path: Path, most: int) -> str:
    """As ``read_text``, of yaml that no parser stumbles over: those in C end the process where nesting is deep, those
    in Python take for ever.

    :raises UnreadableError: also where it is no yaml, or nested deeper than ``_DEEPEST``
    """
    text = read_text(path, most)
    depth = 0
    event: Any
    try:
        for event in yaml.parse(text, Loader=FASTEST_LOADER):  # keeps no more than it is at
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise UnreadableError(_too_deep(event.start_mark.line))
    except yaml.YAMLError as error:
        # libyaml has a bound of its own, which its scanner meets while it looks ahead.
        if "nesting depth" in str(getattr(error, "problem", "")):
            raise UnreadableError(_too_deep(error.problem_mark.line)) from None  # type: ignore[attr-defined]
        raise UnreadableError(not_yaml(error)) from None
    return text


def _too_deep(line: int) -> str:
    return tr("line {line}: nested deeper than {deepest} levels", line=line + 1, deepest=_DEEPEST)


def read_texts(path: Path, most: int) -> Any:
    """A yaml file of at most ``most`` bytes as dicts, lists and texts: no number is computed, no tag means anything,
    aliases are what they name and ``<<`` is a key as any other.

    :raises UnreadableError: it cannot be read, is larger, or is no yaml
    """
    text = read_shallow(path, most)
    try:
        return yaml.load(text, Loader=_TEXT_LOADER)  # noqa: S506 - makes texts alone
    except yaml.YAMLError as error:
        raise UnreadableError(not_yaml(error)) from None


def not_yaml(error: Exception) -> str:
    """Say what a yaml parser raised: ``line 3, column 5: this is not yaml: …``."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    place = tr("line {line}, column {column}: ", line=mark.line + 1, column=mark.column + 1) if mark else ""
    problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
    return tr("{place}this is not yaml: {problem}", place=place, problem=problem)


def quoted(text: str) -> str:
    """Quote a text as a yaml scalar that any parser reads as this text.

    >>> print(quoted('a "b" \\n é'))
    "a \\"b\\" \\n é"
    """
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    """As in JSON, but that yaml takes no halves of characters; one that stands alone has no spelling in it at all."""
    code = ord(character)
    if character in '"\\' or not character.isprintable():
        if code > 0xFFFF:
            return f"\\U{code:08x}"
        return "\\ufffd" if 0xD800 <= code <= 0xDFFF else json.dumps(character)[1:-1]
    return character
