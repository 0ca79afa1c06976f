"""Warn of settings that selected nothing in a step, usually a typing error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import TYPE_CHECKING

from msprobe_ms.dump.dialects import MODULE_PREFIXES
from msprobe_ms.dump.names import FORWARD, EntryName, parse_entry
from msprobe_ms.dump.patterns import words
from msprobe_ms.recording.selection.filters import NameList, Scope, Skip
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr, tr_join, tr_list

if TYPE_CHECKING:
    from msprobe_ms.config import Config


#: Names looked at for something near; patterns looked at, and names told; the mean likeness of words that is near.
_MOST_NAMES = 20_000
_MOST_SHOWN = 3
_NEAR = 0.6

#: Name without direction and index (``Cell.fc1.Dense``) → calls of it in the step.
Calls = Mapping[str, int]


class UnusedSettings:
    """Warns of each value of a key once that it selects nothing. Lives as long as its debugger."""

    def __init__(self) -> None:
        self._warned: set[tuple[str, object]] = set()

    def warn(
        self, config: Config, calls: Calls, names: NameList, scope: Scope, skip: Skip, stored: NameList | None
    ) -> None:
        """Warn of the keys of ``config`` that selected nothing of ``calls`` in the step that is over."""
        if names.asked and not names.hit and self._first("list", config.list):
            said = tr(
                "list {shown} selects none of the {count} names in this step{near}",
                shown=_shown(config.list), count=len(calls), near=_near_patterns(config.list, calls),
            )  # fmt: skip
            logger.warning(said)
        if names.hit:
            self._warn_of_patterns("list", names, tr("names"), calls)
        if stored is not None and stored.hit:
            self._warn_of_patterns("tensor_list", stored, tr("recorded entries"), calls)
        if config.scope is not None and not (scope.began and scope.ended):
            first, last, _ = config.scope
            end, effect = (
                (last, tr("the range ends with the step")) if scope.began else (first, tr("the range never begins"))
            )
            if scope.began and scope.reversed:
                if self._first("scope", end):
                    said = tr(
                        "scope: {end} comes before {first} and not after it, {effect}; are they in the wrong order?",
                        end=_shown(end), first=_shown(first), effect=effect,
                    )  # fmt: skip
                    logger.warning(said)
            elif self._first("scope", end):
                near = _near_end(end or "", calls, numbered=config.numbers == "by_name")
                told = tr(
                    "scope: {end} does not come in this step, {effect}{near}", end=_shown(end), effect=effect, near=near
                )
                logger.warning(told)
        if stored is not None and stored.asked and not stored.hit and self._first("tensor_list", config.tensor_list):
            said = tr(
                "tensor_list {shown} selects none of what is recorded in this step{near}",
                shown=_shown(config.tensor_list), near=_near_patterns(config.tensor_list, calls),
            )  # fmt: skip
            logger.warning(said)
        if skip.took_none and self._first("skip", config.skip):
            said = tr(
                "skip {skip} passes over all of the {calls} calls in this step; use a smaller one",
                skip=config.skip, calls=skip.selected,
            )  # fmt: skip
            logger.warning(said)

    def warn_of_places(self, places: Sequence[str], calls: int, there: Sequence[str]) -> None:
        """Warn that no call of the step stands at one of ``places``; ``there`` are some places with their calls."""
        if self._first("places", tuple(places)):
            logger.warning(
                tr(
                    "places {shown}: none of the {calls} calls in this step stands there; the first are {there}",
                    shown=_shown(list(places)),
                    calls=calls,
                    there=tr_list(there),
                )
            )

    def _warn_of_patterns(self, key: str, names: NameList, what: str, calls: Calls) -> None:
        for pattern in names.unhit:
            if self._first(key, pattern):
                said = tr(
                    "{key}: {shown} selects none of the {what} in this step, other patterns do{near}",
                    key=key, shown=_shown(pattern), what=what, near=_near_patterns([pattern], calls),
                )  # fmt: skip
                logger.warning(said)

    def _first(self, key: str, value: object) -> bool:
        if (key, value) in self._warned:
            return False
        self._warned.add((key, value))
        return True


def _near_patterns(patterns: Sequence[str], calls: Calls) -> str:
    found = [base for pattern in patterns[:_MOST_SHOWN] for base in _nearest(words(pattern), calls)]
    shown = list(dict.fromkeys(found))[:_MOST_SHOWN]
    return tr("; did you mean {names}?", names=tr_join(tr(" or "), shown)) if shown else ""


def _near_end(end: str, calls: Calls, *, numbered: bool) -> str:
    """What an end may mean; ``numbered``: the numbers of calls follow from how many there were of each name."""
    entry = parse_entry(end)
    if entry is None:
        return _near_patterns([end], calls)
    near = _nearest(words(f"{entry.prefix}.{entry.name}.{entry.class_name}"), calls)
    if not near:
        return ""
    if not numbered:
        return tr("; did you mean another call of {near}?", near=near[0])
    found = _entry(near[0], entry.direction, min(entry.index or 0, calls[near[0]] - 1))
    if found == end:  # a backward, or a forward that ended with an exception
        return "" if entry.direction == FORWARD else tr("; its forward came")
    return tr("; did you mean {found}?", found=found)


def _entry(base: str, direction: str, index: int) -> str:
    prefix, _, rest = base.partition(".")
    if prefix in MODULE_PREFIXES:
        return f"{base}.{direction}.{index}"
    return str(EntryName(prefix, rest, "", direction, index))


def _nearest(wanted: Sequence[str], calls: Calls) -> list[str]:
    """The names whose words come nearest to those wanted, nearest first; none where nothing is near."""
    if not wanted:
        return []

    @cache
    def likeness(word: str, part: str) -> float:
        return 1.0 if word == part else 0.95 * SequenceMatcher(None, word.lower(), part.lower()).ratio()

    def score(parts: Sequence[str]) -> float:
        total, place = 0.0, 0
        for word in wanted:  # in this order
            alike = [likeness(word, part) for part in parts[place:]]
            best = max(alike, default=0.0)
            total += best
            place += alike.index(best) + 1 if best >= _NEAR else 0
        return total / len(wanted)

    scores = {base: score(words(base)) for base in list(calls)[:_MOST_NAMES]}
    best = sorted((base for base in scores if scores[base] >= _NEAR), key=lambda base: -scores[base])
    return best[:_MOST_SHOWN]


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else text[:199] + "…"
