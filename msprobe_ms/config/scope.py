"""Check ``scope``, the range of entries that are recorded: its form, and that its ends fit the level."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msprobe_ms.config.values import Rejected, pattern_problem
from msprobe_ms.dump.dialects import API_PREFIXES, MODULE_PREFIXES
from msprobe_ms.dump.names import BACKWARD, FORWARD, parse_entry
from msprobe_ms.dump.patterns import Range, is_literal
from msprobe_ms.support.text import show, suggestion
from msprobe_ms.support.translation import tr, tr_join

_MODULE_GRAMMAR = tr(
    'a module as {Cell or Module}.{name}.{Class}.{forward or backward}.{n}, such as "Cell.net.fc1.Dense.forward.0"'
)
_API_GRAMMAR = tr('an API as {Prefix}.{api}.{n}.{forward or backward}, such as "Functional.relu.0.forward"')

_PATTERN = tr('a pattern, such as "class:LayerNorm"')

_FROM, _UNTIL = "from", "until"
_HALF_OPEN = tr('{{"{from_name}": first included, "{until}": last excluded}}', from_name=_FROM, until=_UNTIL)


def scope_range(value: object, level: str | None) -> Range | None:
    """``[first, last]``, both included, or ``{"from": first, "until": last}``, the last excluded; None for everything.

    An end that is null or absent is open. ``level`` is None where it is itself a mistake. Raises `Rejected`.
    """
    if value is None or isinstance(value, Range):
        return value
    if isinstance(value, Mapping):
        return _half_open(value, level)
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise Rejected(
            (
                (),
                tr(
                    "{value} is not accepted; use [start, end], {half_open}, or [] for everything",
                    value=show(value),
                    half_open=_HALF_OPEN,
                ),
            )
        )
    if len(value) > 2:
        raise Rejected(
            ((), tr("{count} names are not accepted; use [start, end], or [] for everything", count=len(value)))
        )
    _check_ends(enumerate(value), level)
    return _range(value[0], value[-1], includes_last=True) if value else None


def _half_open(value: Mapping[str, object], level: str | None) -> Range | None:
    mistakes = [
        (
            (key,),
            tr(
                "unknown key; use {from_name}, {until}{suggestion}",
                from_name=_FROM,
                until=_UNTIL,
                suggestion=suggestion(key, (_FROM, _UNTIL)),
            ),
        )
        for key in value
        if key not in (_FROM, _UNTIL)
    ]
    if mistakes:
        raise Rejected(*mistakes)
    first, last = value.get(_FROM), value.get(_UNTIL)
    _check_ends(value.items(), level)
    if first is not None and first == last:
        raise Rejected(
            (
                (_UNTIL,),
                tr("{last} is where the range begins, which leaves nothing; use a later entry", last=show(last)),
            )
        )
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
        return tr("{end} is not accepted; use the name of an entry in quotes, or null for an open end", end=show(end))
    if end and not is_literal(end):
        return pattern_problem(end) or _level_problem(end, _side(end), level)
    parsed = parse_entry(end)
    if parsed is None or parsed.direction not in (FORWARD, BACKWARD):
        grammars = [_MODULE_GRAMMAR] if level != "L1" else []
        grammars += [_API_GRAMMAR] if level != "L0" else []
        return tr(
            "{end} is not the name of an entry; use {value}",
            end=show(end),
            value=tr_join(tr("; or "), [*grammars, _PATTERN]),
        )
    return _level_problem(end, parsed.is_module, level)


def _side(text: str) -> bool | None:
    """Whether a pattern stands for modules; None where it does not say."""
    head, dot, _ = text.partition(".")
    if not dot or head not in {*MODULE_PREFIXES, *API_PREFIXES}:
        return None
    return head in MODULE_PREFIXES


def _level_problem(end: str, is_module: bool | None, level: str | None) -> str:
    if level == "L0" and is_module is False:
        return tr(
            "{end} is an API, and level L0 records modules; use {module_grammar}",
            end=show(end),
            module_grammar=_MODULE_GRAMMAR,
        )
    if level == "L1" and is_module is True:
        return tr(
            "{end} is a module, and level L1 records APIs; use {api_grammar}", end=show(end), api_grammar=_API_GRAMMAR
        )
    return ""
