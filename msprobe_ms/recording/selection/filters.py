"""Filters for the calls of a step and their fields: list, scope, data_mode, skip.

The keys: docs/format.md, "Selection".
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from msprobe_ms.dump.names import BACKWARD, FORWARD, PARAMETERS_GRAD
from msprobe_ms.dump.patterns import Matcher, Range, is_literal, matcher

#: Which side of ``data_mode`` a field of an entry stands on.
_SIDE = {
    "input_args": "input",
    "input_kwargs": "input",
    "parameters": "input",
    "input": "input",
    "output": "output",
    PARAMETERS_GRAD: "output",
}


class FieldFilter:
    """``data_mode``: a field is kept when ``all``, its direction or its side is named; without ``values`` no field is,
    but the calls whose fields would be."""

    def __init__(self, data_mode: Collection[str], *, values: bool = True) -> None:
        kept = {
            (direction, field): bool({"all", direction, side} & set(data_mode))
            for direction in (FORWARD, BACKWARD)
            for field, side in _SIDE.items()
        }
        self._keeps = {place: values and keeps for place, keeps in kept.items()}
        self._keeps_any = {
            direction: any(kept[direction, field] for field in fields)
            for direction, fields in (
                (BACKWARD, ("input", "output", PARAMETERS_GRAD)),
                (FORWARD, ("input_args", "output")),
            )
        }

    def keeps(self, direction: str, field: str) -> bool:
        return self._keeps[direction, field]

    def keeps_any(self, direction: str) -> bool:
        return self._keeps_any[direction]


class NameList:
    """``list``: a name is accepted when any of the patterns stands for it; no patterns accept everything."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = list(patterns)
        #: Those that have accepted a name, and those that have not.
        self._hit: list[Matcher] = []
        self._unhit = [(pattern, matcher(pattern)) for pattern in dict.fromkeys(patterns)]
        #: Whether any name was asked for.
        self.asked = False

    def accepts(self, name: str) -> bool:
        if not self._patterns:
            return True
        self.asked = True
        accepted = False
        for pattern, matches in self._unhit:  # all of them: one pattern must not hide another
            if matches(name):
                accepted = True
                self._hit.append(matches)
                self._unhit = [each for each in self._unhit if each[0] != pattern]
        return accepted or any(matches(name) for matches in self._hit)

    @property
    def hit(self) -> bool:
        """Whether any name was accepted."""
        return bool(self._hit)

    @property
    def unhit(self) -> list[str]:
        """The patterns that have accepted no name."""
        return [pattern for pattern, _ in self._unhit]


class Scope:
    """``scope``: a call belongs to the range when it *begins* inside it. Lives for one step.

    The range opens whenever an entry that ``first`` stands for begins. It closes whenever one that ``last`` stands for
    begins, or, where the last is included, has ended and is inside no other such.
    """

    def __init__(self, span: Range | None) -> None:
        first, last, self._includes_last = span or Range(None, None)
        self._opens, self._closes = _end(first), _end(last)
        #: Included last entries that have begun and not ended.
        self._running: set[str] = set()
        self.is_open = first is None
        #: Whether each end has come, the last one after the first; an open end need not.
        self.began, self.ended = first is None, last is None
        #: Whether the last came before the first.
        self.reversed = False

    def begins(self, name: str) -> bool:
        """Tell that a call begins; whether it belongs to the range."""
        if self._opens(name):
            self.is_open = self.began = True
        if self._closes(name):
            if self._includes_last:
                self._running.add(name)
            else:
                self._close()
        return self.is_open

    def ends(self, name: str) -> None:
        """Tell that a call ended."""
        if self._includes_last and self._closes(name):
            self._running.discard(name)
            if not self._running:
                self._close()

    def _close(self) -> None:
        self.is_open = False
        self.ended, self.reversed = self.ended or self.began, self.reversed or not self.began

    def bounds(self, name: str) -> bool:
        """Whether the range may open or close with this entry."""
        return self._opens(name) or self._closes(name)


def _end(text: str | None) -> Matcher:
    if text is None:
        return _is_never
    return text.__eq__ if is_literal(text) else matcher(text)


def _is_never(name: str) -> bool:
    return False


class Turn:
    """What the calls made inside one call are numbered by: the first number, and how many there were so far."""

    __slots__ = ("apis", "first", "modules", "places")

    def __init__(self, first: int = 0) -> None:
        self.first = first
        #: Modules that were selected, APIs that were selected, all modules.
        self.modules = self.apis = self.places = 0


class Skip:
    """``skip: n``: every n-th of the selected calls is recorded; 0 and 1 record all. Lives for one step.

    Calls are numbered in execution order inside the module that makes them, modules and APIs apart. A flat net is
    numbered from 0 on, what is inside a module from a number that follows from the module's own. So a call that only
    one of two runs makes shifts what comes after it inside the same module, not the rest of the step, and both runs
    record the same calls.
    """

    def __init__(self, skip: int) -> None:
        self._every = max(skip, 1)
        self._stride = _stride(self._every)
        self._outside = Turn()
        self._taken: set[str] = set()
        #: Of each module's latest call: the first number inside it, and whether it is recorded.
        self._before: dict[str, tuple[int, bool]] = {}
        #: The selected calls so far.
        self.selected = 0

    def enter(
        self, base: str, maker: Turn | None, *, is_module: bool, selected: bool, again: bool
    ) -> tuple[Turn, bool]:
        """One more call of ``base``, made by the module of turn ``maker``: its own turn, and whether it is recorded.

        What backward computes ``again`` is recorded where the module's call before was: its gradients may be there.
        """
        if self._every == 1:
            return self._outside, True
        if again and base in self._before:
            first, taken = self._before[base]
            return Turn(first), taken and selected
        maker = maker or self._outside
        turn = Turn((maker.first + maker.places) * self._stride % self._every)
        number = maker.first + (maker.modules if is_module else maker.apis)
        maker.places += is_module
        taken = selected and number % self._every == self._every - 1
        if selected:
            maker.modules += is_module
            maker.apis += not is_module
            self.selected += 1
        if taken:
            self._taken.add(base)
        if is_module:
            self._before[base] = (turn.first, taken)
        return turn, taken

    def took(self, base: str) -> bool:
        """Whether any call of this module is recorded."""
        return self._every == 1 or base in self._taken

    @property
    def took_none(self) -> bool:
        return self._every > 1 and self.selected > 0 and not self._taken


def _stride(every: int) -> int:
    """The multiplier that spreads 0, 1, 2, … most evenly over the remainders of ``every``.

    It has no divisor in common with it, hence reaches all of them, and lies next to the golden section of it (Knuth,
    The Art of Computer Programming 3, 6.4, multiplicative hashing), hence leaves no large gap at any time.

    >>> [_stride(every) for every in (1, 2, 10, 100)]
    [1, 1, 7, 61]
    """
    golden = every * (math.sqrt(5) - 1) / 2
    near = range(max(1, int(golden) - 9), int(golden) + 10)
    return min((n for n in near if math.gcd(n, every) == 1), key=lambda n: abs(n - golden), default=1)
