"""The keys of a configuration that select calls: ``list``, ``tensor_list``, ``scope``, ``skip``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msprobe_ms.config.values import Rejected, show, suggestion
from msprobe_ms.dump.dialects import MODULE_PREFIXES
from msprobe_ms.dump.names import BACKWARD, FORWARD, parse_entry
from msprobe_ms.dump.patterns import PatternError, Range, is_literal, matcher

_MODULE_GRAMMAR = (
    'a module as {Cell or Module}.{name}.{Class}.{forward or backward}.{n}, such as "Cell.net.fc1.Dense.forward.0"'
)
_API_GRAMMAR = 'an API as {Prefix}.{api}.{n}.{forward or backward}, such as "Functional.relu.0.forward"'

_PATTERN = 'a pattern, such as "class:LayerNorm"'

#: What the frameworks' own APIs start with; a pattern that starts with one of them stands for APIs.
_API_PREFIXES = (
    "Functional", "Tensor", "Mint", "MintFunctional", "MintDistributed", "Distributed", "Primitive", "Jit", "Kernel",
    "Torch", "NPU", "VF", "Aten",
)  # fmt: skip

_MOST_SKIPPED = 1_000_000

_FROM, _UNTIL = "from", "until"
_HALF_OPEN = f'{{"{_FROM}": first included, "{_UNTIL}": last excluded}}'


def pattern(text: str) -> str:
    """A member of ``list`` or ``tensor_list``: a text of the grammar of `msprobe_ms.dump.patterns`."""
    if not text:
        raise Rejected(((), '"" is in every name; use a part of one, such as "relu", or [] for all'))
    if problem := _pattern_problem(text):
        raise Rejected(((), problem))
    return text


def _pattern_problem(text: str) -> str:
    try:
        matcher(text)
    except PatternError as error:
        return f"{show(text)} {error}"
    return ""


def skip(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_SKIPPED:
        return value
    accepted = f"use an integer n from 0 to {_MOST_SKIPPED}: every n-th call is recorded"
    raise Rejected(((), f"{show(value)} is not accepted; {accepted}"))


def scope(value: object, level: str | None) -> Range | None:
    """``[first, last]``, both included, or ``{"from": first, "until": last}``, the last excluded; None for everything.

    An end that is null or absent is open. ``level`` is None where it is itself a mistake. Raises `Rejected`.
    """
    if value is None or isinstance(value, Range):
        return value
    if isinstance(value, Mapping):
        return _half_open(value, level)
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise Rejected(((), f"{show(value)} is not accepted; use [start, end], {_HALF_OPEN}, or [] for everything"))
    if len(value) > 2:
        raise Rejected(((), f"{len(value)} names are not accepted; use [start, end], or [] for everything"))
    _check_ends(enumerate(value), level)
    return _range(value[0], value[-1], includes_last=True) if value else None


def _half_open(value: Mapping[str, object], level: str | None) -> Range | None:
    mistakes = [
        ((key,), f"unknown key; use {_FROM}, {_UNTIL}{suggestion(key, (_FROM, _UNTIL))}")
        for key in value
        if key not in (_FROM, _UNTIL)
    ]
    if mistakes:
        raise Rejected(*mistakes)
    first, last = value.get(_FROM), value.get(_UNTIL)
    _check_ends(value.items(), level)
    if first is not None and first == last:
        raise Rejected(((_UNTIL,), f"{show(last)} is where the range begins, which leaves nothing; use a later entry"))
    return _range(first, last, includes_last=False)


def _range(first: object, last: object, *, includes_last: bool) -> Range | None:
    found = Range(first if isinstance(first, str) else None, last if isinstance(last, str) else None, includes_last)
    return None if found.first is found.last is None else found


def _check_ends(ends: Iterable[tuple[int | str, object]], level: str | None) -> None:
    mistakes = [((place,), problem) for place, end in ends if (problem := _end_problem(end, level))]
    if mistakes:
        raise Rejected(*mistakes)


def _end_problem(end: object, level: str | None) -> str:
    if end is None:
        return ""
    if not isinstance(end, str):
        return f"{show(end)} is not accepted; use the name of an entry in quotes, or null for an open end"
    if end and not is_literal(end):
        return _pattern_problem(end) or _level_problem(end, _side(end), level)
    parsed = parse_entry(end)
    if parsed is None or parsed.direction not in (FORWARD, BACKWARD):
        grammars = [_MODULE_GRAMMAR] if level != "L1" else []
        grammars += [_API_GRAMMAR] if level != "L0" else []
        return f"{show(end)} is not the name of an entry; use {'; or '.join([*grammars, _PATTERN])}"
    return _level_problem(end, parsed.is_module, level)


def _side(text: str) -> bool | None:
    """Whether a pattern stands for modules; None where it does not say."""
    head, dot, _ = text.partition(".")
    if not dot or head not in (*MODULE_PREFIXES, *_API_PREFIXES):
        return None
    return head in MODULE_PREFIXES


def _level_problem(end: str, is_module: bool | None, level: str | None) -> str:
    if level == "L0" and is_module is False:
        return f"{show(end)} is an API, and level L0 records modules; use {_MODULE_GRAMMAR}"
    if level == "L1" and is_module is True:
        return f"{show(end)} is a module, and level L1 records APIs; use {_API_GRAMMAR}"
    return ""
