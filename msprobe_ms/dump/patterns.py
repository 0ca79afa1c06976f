"""Patterns by which a configuration names entries: the one grammar of ``list``, ``scope`` and ``tensor_list``.

    relu                a part of the name, as it is written
    layers.*.norm1      the same with gaps: ``*`` is any run of characters, dots too, or nothing
    class:LayerNorm     a module of this class, an API or operator of this name
    name-regex(Cell.+)  a regular expression for the whole name

A saved value (level debug) has a name and no class.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import NamedTuple

from msprobe_ms.dump.names import DEBUG, EntryName, parse_entry
from msprobe_ms.support.translation import tr

_CLASS = "class:"
_REGEX = "name-regex("

#: Tells whether an entry's name is one of those that a pattern stands for.
Matcher = Callable[[str], bool]


class PatternError(ValueError):
    """A text that follows no form of the grammar; says what is wrong with it and what to write instead."""


def is_literal(text: str) -> bool:
    """Whether ``text`` says itself and nothing more: no ``*``, class or regular expression."""
    return "*" not in text and not text.startswith((_CLASS, _REGEX))


def matcher(text: str) -> Matcher:
    """Compile a pattern to a test of entry names. Raises `PatternError`.

    >>> matches = matcher("layers.*.norm1.")
    >>> matches("Cell.layers.3.norm1.LayerNorm.forward.0"), matches("Cell.layers.3.norm10.LayerNorm.forward.0")
    (True, False)
    """
    if text.startswith(_CLASS):
        return _by_class(text[len(_CLASS) :])
    if text.startswith(_REGEX):
        return _by_regex(text)
    if not text:
        raise PatternError(tr("is in every name"))
    return _by_parts(text)


def _by_parts(text: str) -> Matcher:
    parts = text.split("*")
    if len(parts) == 1:
        return lambda name: text in name

    def matches(name: str) -> bool:
        # The leftmost place of each part leaves the most room for those behind it.
        place = 0
        for part in parts:
            place = name.find(part, place)
            if place < 0:
                return False
            place += len(part)
        return True

    return matches


def _by_class(name: str) -> Matcher:
    if not re.fullmatch(r"[\w*]+", name):
        raise PatternError(
            tr(
                'is no class; use its bare name after the colon: "{name}{bare_class}"',
                name=_CLASS,
                bare_class=_bare_class(name),
            )
        )
    wanted = _family(name)

    def matches(entry: str) -> bool:
        parsed = parse_entry(entry)
        return parsed is not None and parsed.direction != DEBUG and fnmatchcase(_family(_own_name(parsed)), wanted)

    return matches


def _bare_class(name: str) -> str:
    """What was meant by ``mindspore.nn.Dense``, or ``fc.Dense.forward.0``."""
    parts = re.findall(r"[\w*]+", name)
    return next((part for part in reversed(parts) if part[0].isupper()), (*parts, "LayerNorm")[0])


def _own_name(entry: EntryName) -> str:
    """A module's class, an operator's class, a function's own name.

    >>> [_own_name(parse_entry(f"{call}.0.forward")) for call in ("Functional.relu", "Primitive.matmul.MatMul")]
    ['relu', 'MatMul']
    """
    return entry.class_name or entry.name.rpartition(".")[2]


def _family(name: str) -> str:
    """One spelling for what different places call ``LayerNorm`` and ``layer_norm``, ``add``, ``add_`` and ``__add__``.

    >>> {_family(name) for name in ("ReLU", "relu", "relu_")}
    {'relu'}
    """
    return name.replace("_", "").lower()


def _by_regex(text: str) -> Matcher:
    if not text.endswith(")"):
        raise PatternError(tr('has no closing bracket; use "name-regex(…)"'))
    expression = text[len(_REGEX) : -1]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on syntax that some later Python may read otherwise
            wanted = re.compile(expression)
    except re.error as error:
        place = "" if error.pos is None else tr(" at character {number} of it", number=error.pos + 1)
        raise PatternError(tr("holds no regular expression ({msg}{place})", msg=error.msg, place=place)) from None
    except (OverflowError, RecursionError) as error:
        raise PatternError(tr("holds a regular expression that cannot be used ({error})", error=error)) from None
    return lambda name: wanted.fullmatch(name) is not None


def words(text: str) -> list[str]:
    """Return the parts of a pattern that may be compared with parts of names, to find what was meant.

    >>> words("Cell.layers.*.norm1"), words("class:Dense")
    (['Cell', 'layers', 'norm1'], ['Dense'])
    """
    if text.startswith(_REGEX):
        text = text[len(_REGEX) :].replace("\\", "")
    return re.findall(r"\w+", text.removeprefix(_CLASS))


class Range(NamedTuple):
    """A part of a step, in execution order. An end is an entry's name or a pattern; None is open."""

    first: str | None
    last: str | None
    includes_last: bool = True
